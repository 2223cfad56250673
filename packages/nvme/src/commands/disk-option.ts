import { isStreamBackend, parseStreamBackend } from '@rocev2/extents/internal';
import { RoceError } from 'rocev2/internal/core';
import { checkNqn } from '../subsystem.js';

const NQN_PREFIX = 'nqn.2026-11.rocev2:';
const NAME_DEFAULT = 'disk';
/** A name has no colon, so that it cannot be mistaken for a backend; a whole NQN is a name too. */
const NAMED = /^(nqn\.[^=\s]+|[A-Za-z0-9._-]+)=(.+)$/;

export interface DiskOption {
  readonly nqn: string;
  readonly backend: string;
}

export function nqnOf(name: string): string {
  const nqn = name.startsWith('nqn.') ? name : `${NQN_PREFIX}${name}`;
  checkNqn(nqn);
  return nqn;
}

export function parseDisk(text: string): DiskOption {
  const [, name = NAME_DEFAULT, backend = text] = NAMED.exec(text) ?? [];
  const nqn = nqnOf(name);
  if (isStreamBackend(backend)) parseStreamBackend(backend);
  if (/^(memory$|file:|nbd(\+unix)?:|stream:)/.test(backend)) return { nqn, backend };
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${text}' is not a disk`,
    'give NAME=memory, NAME=file:PATH, NAME=nbd:URI or NAME=stream:DISK@MANAGER',
  );
}
