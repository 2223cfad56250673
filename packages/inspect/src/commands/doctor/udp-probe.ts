/**
 * Whether a host has its RoCE port open: a datagram from an ordinary socket, which the system tells of ICMP errors. The datagram goes to QP 0, which
 * every RoCEv2 device drops without an answer (annex A17, CA17-33).
 */

import { createSocket } from 'node:dgram';
import { setTimeout as delay } from 'node:timers/promises';
import { emitRoce, ICRC_BYTES, type IpAddress, UD_SEND_ONLY } from 'rocev2/internal/packet';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';

/** `refused`: ICMP says that nobody has the port. `unreachable`: ICMP says that the host or network cannot be reached. `silent`: no ICMP error. */
export type PortAnswer = 'refused' | 'unreachable' | 'silent';

const PROBES = 3;
/** The error of one datagram is told with the next. */
const BETWEEN_MS = 100;

/** Asks from the address `local`, whose route may be another than that of the host's other addresses; takes 0.3 s. */
export async function probeUdpPort(local: IpAddress, remote: IpAddress, port = ROCE_UDP_PORT): Promise<PortAnswer> {
  const socket = createSocket(remote.family === 4 ? 'udp4' : 'udp6');
  let answer: PortAnswer = 'silent';
  socket.on('error', (error: NodeJS.ErrnoException) => {
    answer = error.code === 'ECONNREFUSED' ? 'refused' : 'unreachable';
  });
  try {
    await new Promise<void>((resolve) => {
      socket.once('error', () => resolve());
      socket.bind(0, local.text, () => socket.connect(port, remote.text, resolve));
    });
    const datagram = packetToQp0();
    for (let i = 0; i < PROBES && answer === 'silent'; i++) {
      socket.send(datagram, () => {}); // what comes back is an event
      await delay(BETWEEN_MS);
    }
    return answer;
  } finally {
    socket.close();
  }
}

/** Its ICRC is 0: a kernel does not show the IPv4 identification of its socket. The packet is dropped in either case. */
function packetToQp0(): Uint8Array {
  const emitted = emitRoce({ opcode: UD_SEND_ONLY, destQpn: 0, psn: 0, qkey: 0, sourceQpn: 1 });
  const packet = new Uint8Array(emitted.length + ICRC_BYTES);
  packet.set(emitted);
  return packet;
}
