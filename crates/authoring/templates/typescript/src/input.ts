// What a step of a Composition says to this function. Its schema is package/input/inputs.yaml.
export interface Input {
  /** The greeting that is put into the ConfigMap. */
  message: string;
}

const FIELDS = ['apiVersion', 'kind', 'metadata', 'message'];

/** Reads an input; an error names the field that is wrong. */
export function parseInput(value: Record<string, unknown> | undefined): Input {
  const input = value ?? {};
  const unknown = Object.keys(input).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) throw new Error(`the input has an unknown field ${unknown}`);
  if (typeof input.message !== 'string') throw new Error('the input has no message');
  return { message: input.message };
}
