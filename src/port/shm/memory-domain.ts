/**
 * Processes can share memory if they have the same user, running system, PID namespace and network namespace; traffic
 * between two networks must not bypass the path between them.
 */

import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import process from 'node:process';

const NAMESPACES = ['pid', 'user', 'net'];
const DOMAIN_DIGITS = 32;

/**
 * 32 hexadecimal digits that only such processes have in common; a digest, so that it discloses nothing. It decides who
 * may try; the kernel decides whether memory is shared.
 */
export function memoryDomain(): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const spaces = NAMESPACES.map((name) => readlinkSync(`/proc/self/ns/${name}`));
    const text = [boot, ...spaces, process.getuid!()].join(' ');
    return createHash('sha256').update(text).digest('hex').slice(0, DOMAIN_DIGITS);
  } catch {
    return undefined;
  }
}
