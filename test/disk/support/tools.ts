/** The programs that use our disks, and the packages of Debian they are in. */

import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { describe } from 'vitest';

const PACKAGE_OF = {
  fio: 'fio',
  'nbd-client': 'nbd-client',
  nbdkit: 'nbdkit',
  nbdinfo: 'libnbd-bin',
  nbdcopy: 'libnbd-bin',
  nbdfuse: 'libnbd-bin',
  nbdsh: 'python3-libnbd',
  'qemu-io': 'qemu-utils',
  'qemu-img': 'qemu-utils',
  e2fsck: 'e2fsprogs',
  debugfs: 'e2fsprogs',
} as const;

export const PACKAGES = [...new Set(Object.values(PACKAGE_OF))];

/** Also where only the administrator usually looks. Debian's own Python first: the libnbd module is there. */
export const TOOL_PATH = `/usr/bin:/usr/sbin:/sbin:${process.env['PATH']}`;

/** Whether the program is there. */
export function hasTool(tool: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { env: { ...process.env, PATH: TOOL_PATH }, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Tools that are not there. */
export function missingTools(): string[] {
  return Object.keys(PACKAGE_OF).filter((tool) => !hasTool(tool));
}

/** Why a file system of ours cannot be mounted here; undefined if it can. */
export function mountRefusal(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may mount';
  for (const device of ['/dev/fuse', '/dev/loop-control']) {
    try {
      accessSync(device, constants.R_OK | constants.W_OK);
    } catch {
      return `there is no ${device}`;
    }
  }
  return hasTool('fusermount3') ? undefined : 'there is no fusermount3';
}

/** `describe` of a suite that needs the tools, skipped with the reason where they are missing. */
export function describeWithTools(title: string, body: () => void): void {
  const missing = missingTools();
  if (missing.length > 0) console.warn(`skipped: ${title}: missing ${missing.join(', ')}`);
  describe.skipIf(missing.length > 0)(title, body);
}
