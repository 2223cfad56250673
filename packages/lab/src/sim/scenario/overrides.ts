/**
 * `path=value` overrides of a scenario file, before it is checked: `nic.mtu=4096`, `flows[0].message=1MiB`,
 * `switch.ecn.pmax=0.1`.
 */

import { checkKind, checkObject, RoceError } from 'rocev2/internal/core';

/**
 * The file with the overrides in it; the file itself stays as it is. Throws ERR_ROCE_MALFORMED for a malformed
 * override, ERR_ROCE_UNKNOWN_NAME for an unknown field, ERR_ROCE_CONFLICT for `nic.cc` if flows have their own rate
 * control.
 */
export function override(file: unknown, texts: readonly string[]): unknown {
  checkObject('the file', file, 'a scenario');
  checkKind('the overrides', texts, Array.isArray(texts), "a list of texts such as 'nic.mtu=4096'");
  for (const text of texts) checkKind('an override', text, typeof text === 'string', "text such as 'nic.mtu=4096'");
  const copy = copyOf(file) as Record<string, unknown>;
  for (const text of texts) {
    const match = /^([\w.[\]-]+)=(.*)$/.exec(text);
    if (match === null) {
      throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not an override`, 'write for example nic.mtu=4096');
    }
    if (/^nic\.cc\b/.test(text)) expectNoOwnControl(copy, text);
    put(
      copy,
      match[1].split(/[.[]/).map((step) => step.replace(/\]$/, '')),
      parsedValue(match[2]),
      text,
    );
  }
  return copy;
}

function copyOf(file: unknown): unknown {
  try {
    return structuredClone(file);
  } catch (cause) {
    const hint = 'a scenario has numbers, texts, lists and objects';
    throw new RoceError('ERR_ROCE_MALFORMED', 'this is not a scenario: a value cannot be copied', hint, { cause });
  }
}

/** The overrides of parameters of rate controls, each alone: those of a whole rate control are divided. */
export function controlParameters(texts: readonly string[]): string[] {
  return texts.flatMap((text) => {
    const [, path, parameter, value] = /^([\w.[\]-]*?\b(?:cc|sinkCc))(\.[\w-]+)?=(.*)$/s.exec(text) ?? [];
    if (path === undefined) return [];
    if (parameter !== undefined) return [text];
    const control = parsedValue(value);
    if (typeof control !== 'object' || control === null) return [];
    return Object.entries(control)
      .filter(([name]) => name !== 'name')
      .map(([name, number]) => `${path}.${name}=${JSON.stringify(number)}`);
  });
}

function expectNoOwnControl({ flows }: Record<string, unknown>, text: string): void {
  const own = Array.isArray(flows)
    ? flows.flatMap((flow, i) => (flow?.cc === undefined ? [] : [`flows[${i}].cc`]))
    : [];
  if (own.length === 0) return;
  throw new RoceError(
    'ERR_ROCE_CONFLICT',
    `'${text}' does not reach flows that have their own rate control`,
    `set ${own.join(', ')} instead`,
  );
}

export function parsedValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function put(target: Record<string, unknown>, steps: readonly string[], value: unknown, text: string): void {
  const [step, ...rest] = steps;
  if (rest.length === 0) {
    target[step] = value;
    return;
  }
  target[step] ??= {};
  // A name alone, as in "cc": "dcqcn", is short for { "name": "dcqcn" }.
  if (step === 'cc' || step === 'sinkCc' || step === 'recovery') target[step] = named(target[step]);
  const next = target[step];
  if (typeof next !== 'object' || next === null) {
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `'${text}': ${step} is ${JSON.stringify(next)}`, 'it has no fields');
  }
  put(next as Record<string, unknown>, rest, value, text);
}

function named(value: unknown): unknown {
  return typeof value === 'string' ? { name: value } : value;
}
