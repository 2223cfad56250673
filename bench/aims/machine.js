// @ts-check
/** What the figures are from: said at the head of a run. */

import os from 'node:os';
import process from 'node:process';

/** @typedef {{date: string, system: string, node: string, cpu: string, cores: number, crc32: string, load: {before: number[], after: number[]}}} Machine */

/** Names of the CRC-32s that are no package of npm. */
const NATIVE_CRCS = ['libdeflate', 'isa-l'];

/** This machine; the CRC-32 is the one that a device takes. @returns {Promise<Machine>} */
export async function thisMachine() {
  const { chooseCrc32 } = await import('../../build/src/driver/crc32/crc32-choice.js');
  return {
    date: new Date().toISOString().slice(0, 10),
    system: `${os.type()} ${os.release().split('.', 2).join('.')}`,
    node: process.version,
    cpu: os.cpus()[0].model.trim(),
    cores: os.cpus().length,
    crc32: chooseCrc32(),
    load: { before: os.loadavg(), after: [] },
  };
}

/** @param {Machine} machine */
export const hasNativeCrc = ({ crc32 }) => NATIVE_CRCS.includes(crc32);

/** @param {Machine} machine */
export function machineText({ node, cpu, cores, crc32, load }) {
  const [before, after] = [load.before, load.after].map(([minute]) => minute.toFixed(1));
  return `node ${node}, ${cores} x ${cpu}, load ${before} before, ${after} after, CRC-32 by ${crc32} unless a row names another`;
}

/** The ports of all rows that have one, each once: who had which. @param {Iterable<{name: string, port?: string}>} rows */
export function portLines(rows) {
  /** @type {Map<string, string>} */
  const byName = new Map();
  for (const { name, port } of rows) if (port !== undefined && name.startsWith('rocev2')) byName.set(name, port);
  return [...byName].map(([name, port]) => `${name}: ${port}`);
}
