import { parseCount, parseSizeBytes, RoceError } from 'rocev2/internal/core';
import { ANA_STATES, type AnaState } from '../ana.js';
import type { NvmeTransport } from '../target-connection.js';
import { type DiskOption, nqnOf, parseDisk } from './disk-option.js';

export type TargetChange =
  | { readonly kind: 'add'; readonly disk: DiskOption; readonly sizeBytes: number | undefined }
  | { readonly kind: 'remove'; readonly nqn: string; readonly nsid: number }
  | { readonly kind: 'resize'; readonly nqn: string; readonly nsid: number; readonly sizeBytes: number }
  | {
      readonly kind: 'ana';
      readonly transport: NvmeTransport;
      readonly address: string;
      readonly state: AnaState;
    };

const CHANGE_FORMS = [
  'add [NAME=]BACKEND [SIZE]',
  'remove NAME NSID',
  'resize NAME NSID SIZE',
  'ana TRANSPORT ADDRESS STATE',
] as const;

export function parseChange(words: readonly string[]): TargetChange {
  const [kind, first, second, third, ...rest] = words;
  const count = rest.length > 0 ? -1 : words.length;
  if (kind === 'add' && (count === 2 || count === 3)) {
    return { kind, disk: parseDisk(first), sizeBytes: second === undefined ? undefined : parseSizeBytes(second) };
  }
  if (kind === 'remove' && count === 3) return { kind, nqn: nqnOf(first), nsid: parseCount(second, 1) };
  if (kind === 'resize' && count === 4) {
    return { kind, nqn: nqnOf(first), nsid: parseCount(second, 1), sizeBytes: parseSizeBytes(third) };
  }
  if (kind === 'ana' && count === 4) {
    if (first !== 'rdma' && first !== 'tcp') throw wrong(`'${first}' is not a transport: rdma or tcp`);
    if (!Object.hasOwn(ANA_STATES, third)) {
      throw wrong(`'${third}' is not a state: ${Object.keys(ANA_STATES).join(', ')}`);
    }
    return { kind, transport: first, address: second, state: third as AnaState };
  }
  throw wrong(`'${words.join(' ')}' is not a change`);
}

function wrong(what: string): RoceError {
  return new RoceError('ERR_ROCE_MALFORMED', what, CHANGE_FORMS.join('; '));
}
