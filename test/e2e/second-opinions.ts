/** Other people's programs that read what we write: tshark and scapy our captures, promtool our metrics. Each may be missing. */

import { spawnSync } from 'node:child_process';

export const hasTshark = spawnSync('tshark', ['--version']).status === 0;

/** Debian's scapy belongs to Debian's Python, which need not be the first in the path. */
const PYTHONS = ['/usr/bin/python3', 'python3'];
const python = PYTHONS.find((name) => spawnSync(name, ['-c', 'import scapy.contrib.roce']).status === 0);
export const hasScapy = python !== undefined;

export const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

/** What Prometheus' own checker complains of in a page of metrics: syntax, and names and types against its conventions. */
export function promtoolComplaints(metrics: string): string {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: metrics, encoding: 'utf8' });
  return status === 0 ? '' : `${stdout}${stderr}` || `exit code ${status}`;
}

/**
 * What is inside a message is the program's business: Wireshark guesses RPC-over-RDMA and finds our random bytes to be bad RPC, and
 * Ethernet over InfiniBand and finds an empty datagram too short.
 */
const PAYLOAD_GUESSES = ['rpcordma', 'infiniband.eoib'];

/** The given fields of every packet, as tshark prints them: empty where the packet has no such field. */
export function tsharkFields(file: string, fields: readonly string[]): string[][] {
  const wanted = fields.flatMap((field) => ['-e', field]);
  const guesses = PAYLOAD_GUESSES.flatMap((name) => ['--disable-protocol', name]);
  const options = [...guesses, '-r', file, '-T', 'fields', ...wanted];
  const { status, stdout, stderr } = spawnSync('tshark', options, { encoding: 'utf8', maxBuffer: 64 << 20 });
  if (status !== 0) throw new Error(`tshark: ${stderr}`);
  const lines = stdout.split('\n').slice(0, -1);
  return lines.map((line) => line.split('\t'));
}

const CHECK_ICRC = `
import sys
from scapy.utils import rdpcap
from scapy.layers.inet import IP
from scapy.contrib.roce import BTH
good = bad = 0
for packet in rdpcap(sys.argv[1]):
    if packet[BTH].compute_icrc(b'') == bytes(packet[IP])[-4:]:
        good += 1
    else:
        bad += 1
print(good, bad)
`;

/** How many packets of an IPv4 capture have the ICRC that scapy computes, and how many another one. */
export function icrcByScapy(file: string): { good: number; bad: number } {
  const { status, stdout, stderr } = spawnSync(python!, ['-c', CHECK_ICRC, file], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`scapy: ${stderr}`);
  const [good, bad] = stdout.split(' ').map(Number);
  return { good, bad };
}
