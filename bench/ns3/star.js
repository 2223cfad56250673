// @ts-check
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A flow that does not end: the simulator counts bytes in 32 bits. */
const ENDLESS_BYTES = 4_000_000_000;

/**
 * Writes files of N flows from the first hosts of a star to the last one; every link has a delay of 1 us.
 *
 * @param {number} flows @param {number} gbps @param {string} folder
 */
export function writeStar(flows, gbps, folder) {
  const topology = join(folder, 'topology.txt');
  const list = join(folder, 'flows.txt');
  const hosts = Array.from({ length: flows + 1 }, (_, host) => host);
  const links = hosts.map((host) => `${host} ${flows + 1} ${gbps}Gbps 1000ns 0`);
  writeFileSync(topology, `${flows + 2} 1 ${flows + 1}\n${flows + 1}\n${links.join('\n')}\n`);
  const lines = hosts.slice(0, flows).map((host) => `${host} ${flows} 3 100 ${ENDLESS_BYTES} 2`);
  writeFileSync(list, `${flows}\n${lines.join('\n')}\n`);
  return { topology, flows: list };
}
