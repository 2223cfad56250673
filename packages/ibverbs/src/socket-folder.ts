/** Where the NIC of an address listens: a folder that only this user can enter. */

import { lstatSync, mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { RoceError } from 'rocev2/internal/core';

const OTHERS = 0o077;

/** Path of the socket. Makes the folder. Throws ERR_ROCE_IO if it belongs to, or is open to, another user. */
export function socketPath(address: string, env: NodeJS.ProcessEnv): string {
  const uid = process.getuid?.() ?? 0;
  const folder = path.join(env['XDG_RUNTIME_DIR'] ?? tmpdir(), `rocev2-verbs-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid: owner, mode } = lstatSync(folder);
  if (owner !== uid || (mode & OTHERS) !== 0) {
    throw new RoceError('ERR_ROCE_IO', `other users can enter ${folder}`, `chmod 700 it, or set XDG_RUNTIME_DIR`);
  }
  return path.join(folder, `${address.replaceAll(':', '_')}.sock`);
}

/** Whether a NIC process listens there. */
export function isServed(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(socket);
    probe.once('connect', () => resolve(true));
    probe.once('error', () => resolve(false));
    probe.once('close', () => probe.destroy());
    probe.once('connect', () => probe.end());
  });
}
