/** Programs whose captures are audited: what two real processes say to each other keeps the rules of RoCEv2 (packages/inspect/docs/conformance.md). */

import { mkdtempSync, rmSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach } from 'vitest';
import { auditOf, expectCleanFile } from '../../packages/inspect/test/audit/capture-file.js';
import { type Program, rocev2Starter } from './executable.js';

/** Commands with `--pcap`. */
const CAPTURING = ['bw', 'lat'];
const ROCE_PORT = 4791;

/**
 * As rocev2Starter; in addition each client of `bw` and `lat` captures what it sends and receives, and after each test the captures are audited. A
 * client that ends with an error may have sent nothing. `--loss` with `corrupt` damages packets, which rule 11 reports.
 */
export function auditedStarter(): (...args: string[]) => Program {
  const start = rocev2Starter();
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-audited-'));
  let count = 0;
  const captures: { readonly file: string; readonly program: Program; readonly args: readonly string[] }[] = [];
  afterAll(() => rmSync(folder, { recursive: true }));
  afterEach(async () => {
    const udpPorts = [ROCE_PORT, ...captures.flatMap(({ args }) => udpPortsOf(args))];
    for (const { file, program, args } of captures.splice(0)) {
      program.kill('SIGKILL');
      if ((await program.ended()) !== 0) continue;
      const expected = args.some((arg) => arg.includes('corrupt=')) ? [11] : [];
      await expectCleanFile(file, await auditOf(file, udpPorts), expected);
      rmSync(file);
    }
  });
  return (...args) => {
    // What runs for a time sends gigabytes.
    if (!isClient(args) || args.includes('--pcap') || args.includes('-D')) return start(...args);
    const file = join(folder, `${++count}.pcapng`);
    const program = start(...args, '--pcap', file);
    captures.push({ file, program, args });
    return program;
  };
}

/** Clients are told an address, which is not the value of an option. */
function isClient([command, ...args]: readonly string[]): boolean {
  return CAPTURING.includes(command) && args.some((arg, i) => isIP(arg) !== 0 && !args[i - 1].startsWith('-'));
}

function udpPortsOf(args: readonly string[]): number[] {
  const at = args.indexOf('--udp-port');
  return at < 0 ? [] : [Number(args[at + 1])];
}
