/**
 * Checks the RoCE port with a datagram from an ordinary socket, which reports ICMP errors. It goes to QP 0, which every
 * RoCEv2 device drops silently (annex A17, CA17-33).
 */

import { createSocket } from 'node:dgram';
import { setTimeout as delay } from 'node:timers/promises';
import { emitRoce, ICRC_BYTES, type IpAddress, UD_SEND_ONLY } from 'rocev2/internal/packet';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';

/** `refused`, `unreachable`: by ICMP. `silent`: no ICMP error. */
export type PortAnswer = 'refused' | 'unreachable' | 'silent';

const PROBES = 3;
const BETWEEN_MS = 100;

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
      socket.send(datagram, () => {});
      await delay(BETWEEN_MS);
    }
    return answer;
  } finally {
    socket.close();
  }
}

/** Its ICRC is 0: a kernel does not show the IPv4 identification of its socket. */
function packetToQp0(): Uint8Array {
  const emitted = emitRoce({ opcode: UD_SEND_ONLY, destQpn: 0, psn: 0, qkey: 0, sourceQpn: 1 });
  const packet = new Uint8Array(emitted.length + ICRC_BYTES);
  packet.set(emitted);
  return packet;
}
