// What the function composes: a ConfigMap with a greeting.
import {
  fatal,
  fromObject,
  getInput,
  getObservedComposedResources,
  getObservedCompositeResource,
  Ready,
  type RunFunctionRequest,
  type RunFunctionResponse,
  setDesiredComposedResources,
} from '@crossplane-org/function-sdk-typescript';
import { type Input, parseInput } from './input.js';

// The name of the ConfigMap in the pipeline.
const GREETING = 'greeting';

/** Answers one call. What is wrong with the request is a fatal result, which users see. */
export async function compose(req: RunFunctionRequest, rsp: RunFunctionResponse): Promise<RunFunctionResponse> {
  let input: Input;
  try {
    input = parseInput(getInput(req));
  } catch (error) {
    return fatal(rsp, (error as Error).message);
  }
  const composite = getObservedCompositeResource(req)?.resource as { metadata?: { name?: string } } | undefined;
  const message = `${input.message}, ${composite?.metadata?.name ?? ''}`;
  // A ConfigMap is ready as soon as it exists.
  const ready = GREETING in getObservedComposedResources(req) ? Ready.READY_TRUE : Ready.READY_FALSE;
  const configMap = fromObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { message } }, undefined, ready);
  return setDesiredComposedResources(rsp, { [GREETING]: configMap });
}
