/** `--disk` of `rocev2 nvme target`: the name of a subsystem, and where its bytes lie. */

import { isStreamBackend, parseStreamBackend } from '@rocev2/extents/internal';
import { RoceError } from 'rocev2/internal/core';
import { checkNqn } from '../subsystem.js';

/** NQNs of subsystems that are given a short name. */
const NQN_PREFIX = 'nqn.2026-11.rocev2:';
/** The name of disks that are given none. */
const NAME_DEFAULT = 'disk';
/** A name has no colon, so that a backend cannot pass for one; a whole NQN is a name, too. */
const NAMED = /^(nqn\.[^=\s]+|[A-Za-z0-9._-]+)=(.+)$/;

/** A disk of the command line. */
export interface DiskOption {
  /** NQN of its subsystem. */
  readonly nqn: string;
  /** Backend, as `openBackend` takes it. */
  readonly backend: string;
}

/** The NQN of a name: a whole NQN is its own. Throws ERR_ROCE_MALFORMED for a name that cannot be one. */
export function nqnOf(name: string): string {
  const nqn = name.startsWith('nqn.') ? name : `${NQN_PREFIX}${name}`;
  checkNqn(nqn);
  return nqn;
}

/** Reads `[NAME=]BACKEND`. Throws ERR_ROCE_MALFORMED for a name that cannot be one, and as `parseStreamBackend`. */
export function parseDisk(text: string): DiskOption {
  const [, name = NAME_DEFAULT, backend = text] = NAMED.exec(text) ?? [];
  const nqn = nqnOf(name);
  if (isStreamBackend(backend)) parseStreamBackend(backend); // A mistake of the caller is told before anything is opened.
  if (/^(memory$|file:|nbd(\+unix)?:|stream:)/.test(backend)) return { nqn, backend };
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${text}' is not a disk`,
    'give NAME=memory, NAME=file:PATH, NAME=nbd:URI or NAME=stream:DISK@MANAGER',
  );
}
