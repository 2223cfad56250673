/** Where the NIC of an address listens: a folder that only this user can enter. */

import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { checkControlDirectory } from 'rocev2/internal/estats';

/** Makes a folder that only this user can enter. Rejects with ERR_ROCE_IO if it belongs to, or is open to, others. */
export async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await checkControlDirectory(folder);
}

/** Path of the socket. Makes the folder. Rejects with ERR_ROCE_IO if it belongs to, or is open to, another user. */
export async function socketPath(address: string, env: NodeJS.ProcessEnv): Promise<string> {
  const folder = path.join(env['XDG_RUNTIME_DIR'] ?? tmpdir(), `rocev2-verbs-${process.getuid?.() ?? 0}`);
  await makePrivateFolder(folder);
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
