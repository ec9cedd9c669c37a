// Requests and their responses, in the protocol's JSON form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromCompose, RunFunctionRequest, RunFunctionResponse } from '@crossplane-org/function-sdk-typescript';
import { compose } from './fn.js';

const composite = { resource: { metadata: { name: 'world' } } };
const map = { apiVersion: 'v1', kind: 'ConfigMap', data: { message: 'Hello, world' } };
const cases = {
  'first call': {
    request: { meta: { tag: 'a' }, input: { message: 'Hello' }, observed: { composite } },
    resources: { greeting: { resource: map, ready: 'READY_FALSE' } },
  },
  exists: {
    request: { meta: { tag: 'a' }, input: { message: 'Hello' }, observed: { composite, resources: { greeting: { resource: map } } } },
    resources: { greeting: { resource: map, ready: 'READY_TRUE' } },
  },
};

async function run(request: unknown): Promise<any> {
  const response = await fromCompose(compose).RunFunction(RunFunctionRequest.fromJSON(request));
  return RunFunctionResponse.toJSON(response);
}

for (const [name, { request, resources }] of Object.entries(cases)) {
  test(name, async () => {
    const response = await run(request);
    assert.equal(response.meta.tag, 'a');
    assert.deepEqual(response.desired.resources, resources);
    assert.deepEqual(response.results ?? [], []);
  });
}

test('an input without a message is fatal', async () => {
  const response = await run({ input: { mesage: 'Hello' } });
  assert.equal(response.results[0].severity, 'SEVERITY_FATAL');
  assert.match(response.results[0].message, /mesage/);
});
