/**
 * Which processes can share memory with this one: those of the same user, on the same running system, that see the same processes and the same network. Between two networks
 * packets pass through something that people have put there.
 */

import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import process from 'node:process';

const NAMESPACES = ['pid', 'user', 'net'];
const DOMAIN_DIGITS = 32;

/**
 * 32 hexadecimal digits that only such processes have in common; a digest, so that it tells others nothing. Undefined where the system does not say. It decides who
 * may try; whether memory is shared, the kernel decides.
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
