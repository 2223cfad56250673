/** The `rocev2` executable, inside a rig's namespace or where it needs none. */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RunningCommand } from './command.js';
import type { Rig } from './rig.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Compiles the sources where they have changed, so that what runs is what is there. */
export async function buildRocev2(): Promise<void> {
  await promisify(execFile)(process.execPath, ['scripts/build-if-changed.js'], { cwd: ROOT });
}

function commandLine(args: readonly string[]): string[] {
  return [process.execPath, `${ROOT}packages/cli/bin/rocev2.js`, ...args];
}

/** Starts `rocev2 ARGS` at this machine's end of the bridge. */
export function startRocev2(rig: Rig, args: readonly string[]): RunningCommand {
  return rig.host(commandLine(args));
}

/** Starts `rocev2 ARGS` in no namespace. */
export function rocev2(args: readonly string[]): RunningCommand {
  return new RunningCommand(commandLine(args));
}

/** The document a `--json` run printed. Fails with what the command wrote when it did not end well. */
export async function jsonResult(command: RunningCommand, timeoutMs = 60_000): Promise<Record<string, unknown>> {
  const { exitCode, stdout, stderr } = await command.wait(timeoutMs);
  if (exitCode !== 0) throw new Error(`exit code ${exitCode}\n${stdout}${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** Resolves when a command has said what matches among its diagnostics: that it listens, say. */
export async function saysOnStderr(command: RunningCommand, pattern: string | RegExp): Promise<void> {
  await command.waitForOutput(new RegExp(pattern), 20_000, 'stderr');
}
