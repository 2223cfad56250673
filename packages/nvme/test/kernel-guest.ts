/** The Linux kernel in a guest as host of our targets, and as a target of our hosts: what its suites share. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { RunningCommand } from '../../../test/interop/support/command.js';
import type { Rig } from '../../../test/interop/support/rig.js';
import { saysOnStderr, startRocev2 } from '../../../test/interop/support/rocev2.js';

/** The subsystem of our target. */
export const NQN = 'nqn.2026-11.rocev2:disk';
/** The emulated guest is slow, and so is a busy machine. */
export const PATIENCE_MS = 200_000;
/** The kernel says one of these where an answer is not what it has to be. */
export const COMPLAINTS = /bogus|unsupported|invalid|mismatch|identifiers changed|error recovery|I\/O error|I\/O Cmd/i;

/** A line of shell that ends when the condition holds. */
export const until = (condition: string) => `until ${condition}; do usleep 50000; done`;

/** A line of shell that connects the guest to our target, and waits for the disk. */
export const connect = (transport: string, address: string, more = '') =>
  `nvme connect -t ${transport} -a ${address} -s 4420 -n ${NQN} ${more}\n${until('[ -b /dev/nvme0n1 ]')}`;

/** One or two guests, targets of ours beside them, and a folder. Each test begins without targets and associations. */
export class KernelGuest {
  /** For files of the tests; removed at the end. */
  readonly folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
  readonly rig: () => Rig;
  /** What the guests run; a row of the table of proofs (proof-table.ts). */
  #release = '';
  #targets: RunningCommand[] = [];

  /** To be called in a suite, for which it sets up what goes before and after. */
  constructor(rig: () => Rig, guests: readonly number[] = [1]) {
    this.rig = rig;
    beforeAll(async () => {
      for (const guest of guests) {
        await this.runIn(guest, 'modprobe nvme-rdma', 'modprobe nvme-tcp', 'dmesg -c > /dev/null');
      }
      this.#release = (await this.run('uname -r')).trim();
    });
    beforeEach(async ({ task }) => {
      task.meta.kernelRelease = this.#release;
    });
    afterEach(async () => {
      // The hosts go first: they would try to reconnect to a target that is gone.
      for (const guest of guests) {
        await rig().exec('umount /mnt; nvme disconnect-all; dmesg -c > /dev/null', { guest, timeoutMs: PATIENCE_MS });
      }
      for (const target of this.#targets) await target.stop();
      this.#targets = [];
    });
    afterAll(() => rmSync(this.folder, { recursive: true }));
  }

  /** The addresses of our side. */
  get host4(): string {
    return this.rig().hostSide.ip4;
  }
  get host6(): string {
    return this.rig().hostSide.ip6;
  }

  /** Starts `rocev2 nvme target`; it serves when this resolves. */
  startTarget(args: readonly string[]): Promise<RunningCommand> {
    return this.start(['nvme', 'target', ...args]);
  }

  /** Starts a command of ours that serves until Ctrl-C, and ends with the test. */
  async start(args: readonly string[]): Promise<RunningCommand> {
    const command = startRocev2(this.rig(), args);
    this.#targets.push(command);
    await saysOnStderr(command, 'Ctrl-C ends it');
    return command;
  }

  /** Runs commands in the guest; each must succeed. */
  run(...lines: readonly string[]): Promise<string> {
    return this.runIn(1, ...lines);
  }

  /** Runs commands in one of the guests; each must succeed. */
  async runIn(guest: number, ...lines: readonly string[]): Promise<string> {
    const script = `set -e\n${lines.join('\n')}`;
    const { exitCode, stdout, stderr } = await this.rig().exec(script, { guest, timeoutMs: PATIENCE_MS });
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}\n${stdout}${stderr}`);
    return stdout;
  }

  /** Runs a command that may fail; its exit code and what it says. */
  async tryIn(guest: number, line: string): Promise<{ exitCode: number | null; said: string }> {
    const { exitCode, stdout, stderr } = await this.rig().exec(line, { guest, timeoutMs: PATIENCE_MS });
    return { exitCode, said: stdout + stderr };
  }

  /** What the kernel has said since the test began. */
  kernelLog(): Promise<string> {
    return this.run('dmesg');
  }

  /** I/O in the background that has begun when this resolves. */
  async beginIo(line: string) {
    const io = await this.rig().background('io', line);
    // The paths to controllers have counters, the multipath device has none; the fifth are writes.
    await this.run(until("awk '$5 > 20 { begun = 1 } END { exit !begun }' /sys/block/nvme0c*n1/stat"));
    return io;
  }
}
