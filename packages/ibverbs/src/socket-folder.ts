/** Where the NIC of an address listens: a folder that only this user can enter. */

import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { checkControlDirectory } from 'rocev2/internal/estats';
import { KIND_LIST, MESSAGE_BYTES, NicMessage, OP_HELLO, PID_ARGUMENT, PROTOCOL_VERSION } from './messages.js';

/** A NIC process that is suspended does not answer. */
const HELLO_TIMEOUT_MS = 2000;

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

/** PID of the NIC process that listens there; 0 if it does not give it. Undefined: none listens. */
export function holderOf(socket: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const hello = new NicMessage(Buffer.alloc(MESSAGE_BYTES));
    hello.bytes.writeUInt32LE(OP_HELLO);
    hello.set(0, PROTOCOL_VERSION);
    hello.set(1, KIND_LIST);
    let answer: Buffer = Buffer.alloc(0);
    let isServed = false;
    const probe = connect(socket, () => {
      isServed = true;
      probe.write(hello.bytes);
    });
    probe.setTimeout(HELLO_TIMEOUT_MS, () => probe.destroy());
    probe.on('error', () => {}); // Its end follows.
    probe.on('data', (bytes) => {
      answer = Buffer.concat([answer, bytes]);
      if (answer.length >= MESSAGE_BYTES) probe.destroy();
    });
    probe.once('close', () => {
      const isAnswer = answer.length === MESSAGE_BYTES && answer.readUInt32LE() === 0;
      resolve(isServed ? (isAnswer ? new NicMessage(answer).number(PID_ARGUMENT) : 0) : undefined);
    });
  });
}
