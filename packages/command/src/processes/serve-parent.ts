/**
 * The child's side: answers its parent's calls and exits with it, also when the parent is killed, because the IPC
 * channel closes.
 */

import { RoceError } from 'rocev2/internal/core';
import { loadExtensions } from 'rocev2/internal/driver';
import type { z } from 'zod';
import { END_SIGNALS } from '../interruption.js';
import { plainWords } from '../schema/plain-words.js';
import { type CallAnswer, callSchema, type ProcessService } from './calls.js';

/** Without a parent process it prints that and exits. */
export function serveParent(service: ProcessService): void {
  if (process.send === undefined) {
    process.stderr.write('this program is a part of rocev2 and is started by it\n');
    process.exit(2);
  }
  // A terminal and systemd signal all processes of the command; the parent decides what it means.
  for (const signal of END_SIGNALS) process.on(signal, () => {});
  process.on('disconnect', () => process.exit(0));
  const extensions = loadExtensions(process.argv.slice(2));
  extensions.catch(() => {});
  process.on('message', (message) => {
    void answer(service, message, extensions).then((reply) => {
      // The parent may be gone before the reply is: `disconnect` is on its way, then.
      if (process.connected) process.send!(reply, () => {});
    });
  });
}

function problemOf({ issues: [issue] }: z.ZodError): string {
  return `${issue.path.join('.') || 'the argument'} ${plainWords(issue)}`;
}

async function answer(service: ProcessService, message: unknown, extensions: Promise<void>): Promise<CallAnswer> {
  const { id, method: name, args } = callSchema.parse(message);
  try {
    await extensions;
    const method = Object.hasOwn(service, name) ? service[name] : undefined;
    if (method === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no method ${name}`);
    const parsed = method.args.safeParse(args);
    if (!parsed.success) throw new RoceError('ERR_ROCE_MALFORMED', `${name}: ${problemOf(parsed.error)}`);
    return { id, result: await method.run(parsed.data) };
  } catch (error) {
    if (error instanceof RoceError) return { id, error: { message: error.message, code: error.code } };
    return { id, error: { message: error instanceof Error ? (error.stack ?? error.message) : String(error) } };
  }
}
