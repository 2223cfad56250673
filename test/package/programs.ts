/** The examples as a bundler gets them, and as their bundles are run. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import process from 'node:process';

/** Module format of a bundle. */
export type Format = 'esm' | 'cjs';

/** The examples, and what each prints when all went well. */
export const EXAMPLES: ReadonlyArray<readonly [name: string, prints: RegExp]> = [
  ['hello', /server received: hello over RoCEv2\n[\s\S]*written by the peer\n[\s\S]*saw 42n and left 7n/],
  ['verbs', /receiver RECV 9 bytes: a message\nwritten {2}inline data\nbad key {2}REM_ACCESS_ERR/],
  ['storage', /64 MiB over rdma\n64 writes done over \w+, 1 failover\nback on rdma: 64 of 64 blocks/],
];

/**
 * The text of an example on addresses of these tests alone. CommonJS has no await outside of functions, so that its text is one. `device`: more
 * options of its devices; a NIC in a worker is given memory that it can reach.
 */
export function exampleText(name: string, format: Format, device = ''): string {
  const text = readFileSync(`examples/${name}.js`, 'utf8')
    .replaceAll('127.0.0.', '127.0.1.')
    .replaceAll(/openDevice\(\{ (address[^}]*)\}\)/g, `openDevice({ $1, ${device} })`)
    .replace('const memory = Buffer.alloc(', 'const memory = serverDevice.allocate(');
  if (format === 'esm') return text;
  const body = text.lastIndexOf("from 'rocev2");
  const afterImports = text.indexOf('\n', body) + 1;
  return `${text.slice(0, afterImports)}\n(async () => {\n${text.slice(afterImports)}\n})();\n`;
}

/** What a program printed, on both streams, and how it ended. */
export interface Run {
  readonly code: number;
  readonly output: string;
}

/** Runs a program to its end. */
export function run(file: string): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [file], { timeout: 180_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr }),
    );
  });
}
