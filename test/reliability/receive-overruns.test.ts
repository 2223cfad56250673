/**
 * The receive buffer of a UDP socket overruns while the program does not look: nothing that was lost there goes uncounted. What was sent is what
 * was received and what the kernel says it dropped; a reliable connection brings everything all the same.
 */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { connect, listen, openDevice } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { HAS_KOFFI } from '../support/has-koffi.js';

const ADDRESS = '127.0.7.3';
const PEER = '127.0.7.4';
const ROUNDS = 8;
const PER_ROUND = 1_000;
const DATAGRAM_BYTES = 4_000;

describe.runIf(HAS_KOFFI).each(['dgram', 'mmsg'] as const)('a burst larger than the buffer, %s', (io) => {
  it('is counted to the datagram: sent = received + overruns, and an honest connection is served', async () => {
    const device = await openDevice({ address: ADDRESS, udpPort: 0, io });
    const peer = await openDevice({ address: PEER, udpPort: 0, io });
    const listener = await listen(device, { port: 0, region: 1 << 16 });
    const [, connection] = await Promise.all([
      listener.accept(),
      connect(peer, { host: ADDRESS, port: listener.port }),
    ]);
    expect(device.counters().rx_socket_overruns).toBe(0);
    const before = device.counters().rx_packets;

    const socket = createSocket({ type: 'udp4', lookup: (host, _options, callback) => callback(null, host, 4) });
    const listening = once(socket, 'listening');
    socket.bind(0, PEER);
    await listening;
    // Sent from one turn of the event loop, in which the device reads nothing.
    const garbage = Buffer.alloc(DATAGRAM_BYTES, 0xff);
    let refused = 0;
    let pending = ROUNDS * PER_ROUND;
    for (let i = 0; i < ROUNDS * PER_ROUND; i++) {
      socket.send(garbage, device.attributes.udpPort, ADDRESS, (error) => {
        if (error !== null) refused++;
        pending--;
      });
    }
    await eventually(() => pending === 0);
    const sent = ROUNDS * PER_ROUND - refused;
    await eventually(() => {
      const { rx_packets, rx_socket_overruns } = device.counters();
      return rx_packets - before + rx_socket_overruns >= sent;
    });
    const { rx_packets, rx_socket_overruns, rx_drop_parse } = device.counters();
    console.log(`${io}: ${sent} sent, ${rx_packets - before} received, ${rx_socket_overruns} overruns`);
    expect(rx_socket_overruns).toBeGreaterThan(0);
    expect(rx_packets - before + rx_socket_overruns).toBe(sent);
    expect(rx_drop_parse).toBe(rx_packets - before);

    const data = peer.allocate(1 << 16).fill(5);
    await connection.write(data);
    expect((await connection.read(1 << 16)).equals(data)).toBe(true);
    socket.close();
    await peer.close();
    await device.close();
  });
});
