/** Chains of processes that end in NBD sockets, and fio on them: the processes are children of this one and end with it. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fioOptions, sampleOf } from './fio.js';

/**
 * A contender: the NBD socket that fio uses, and the processes whose time its I/O costs.
 * @typedef {{name: string, reference: string, socket: string, processes: import('node:child_process').ChildProcess[]}} Chain
 */

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL('../../packages/cli/bin/rocev2.js', import.meta.url));
const CLOCK_TICK_NS = 1e7; // USER_HZ is 100 on every Linux that matters.

/** CPU time a process has had, in nanoseconds. @param {number | undefined} pid */
export function cpuNs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_NS;
}

/** The processes of a bench, and a folder for their sockets. */
export class Chains {
  #folder = mkdtempSync(join(tmpdir(), 'rocev2-bench-'));
  /** @type {import('node:child_process').ChildProcess[]} */
  #processes = [];

  /** Path of the socket of this name. @param {string} name */
  socket(name) {
    return join(this.#folder, name.replaceAll(/\W+/g, '-'));
  }

  /** Starts a program, and waits until its stderr says that it serves. @param {string} command @param {string[]} args @param {RegExp} ready */
  async start(command, args, ready) {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#processes.push(child);
    let words = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      words += text;
    });
    const ended = once(child, 'exit');
    ended.catch(() => {});
    while (!ready.test(words)) {
      await Promise.race([once(child.stderr, 'data'), ended]);
      if (child.exitCode !== null) throw new Error(`${command} ${args.join(' ')} ended: ${words}`);
    }
    return child;
  }

  /** Starts `rocev2` with these arguments. @param {string[]} args */
  rocev2(...args) {
    return this.start(process.execPath, [MAIN, ...args], /Ctrl-C ends it/);
  }

  /** Runs `rocev2` with these arguments to its end. @param {string[]} args */
  async runs(...args) {
    await run(process.execPath, [MAIN, ...args]);
  }

  /** fio on a chain. @param {Chain} chain @param {import('./fio.js').Cell} cell @param {number} mebibytes @param {number} seconds */
  async measure({ socket, processes }, cell, mebibytes, seconds) {
    const total = () => processes.reduce((sum, child) => sum + cpuNs(child.pid), 0);
    const before = total();
    const uri = `--uri=nbd+unix:///?socket=${socket}`;
    const { stdout } = await run('fio', ['--ioengine=nbd', uri, ...fioOptions(cell, mebibytes, seconds)]);
    return sampleOf(stdout, cell, total() - before);
  }

  /**
   * Writes the disks of all chains and compiles their code: holes are answered without data, and code is slow until it has been compiled, which takes some
   * ten thousand requests of each kind.
   * @param {readonly Chain[]} chains @param {number} mebibytes @param {number} seconds
   */
  async warm(chains, mebibytes, seconds) {
    for (const chain of chains) await this.measure(chain, { op: 'write', block: '1m', depth: 4 }, mebibytes, seconds);
    for (const op of ['randread', 'randwrite']) {
      for (const chain of chains) await this.measure(chain, { op, block: '8k', depth: 16 }, mebibytes, 2 * seconds);
    }
  }

  /** Ends all processes, the last one first. */
  async close() {
    for (const child of this.#processes.reverse()) {
      if (child.exitCode !== null) continue;
      child.kill('SIGINT');
      await once(child, 'exit');
    }
    rmSync(this.#folder, { recursive: true });
  }
}
