/** Protected packets in a capture: what is in the clear can be read. */

import { expect, it } from 'vitest';
import { IpAddress } from '../../src/packet/address.js';
import { decodeRoce } from '../../src/port/capture/decoded-packet.js';
import { FlowTracker } from '../../src/port/capture/flow-tracker.js';
import { createPair } from '../support/pair.js';

it('BTH, SPI and IV are shown, and nothing is called malformed', async () => {
  const seen: Uint8Array[] = [];
  const pair = await createPair({
    secure: { rekey: { packets: 2 } },
    onPacket: (_, bytes) => seen.push(bytes.slice()),
  });
  const { a, b } = pair;
  a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 3000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
  pair.completions(a.cq, 1);
  const tracker = new FlowTracker();
  const address = IpAddress.parse('192.0.2.1');
  const common = { source: address, destination: address, sourcePort: 4791, destinationPort: 4791, ecn: 0 };
  const decoded = seen.map((payload, i) => {
    const datagram = { ...common, ipPacket: payload, udpOffset: 0, payload, payloadBytes: payload.length };
    const packet = decodeRoce(datagram, { number: i + 1, timeNs: 0, interfaceId: 0 }, false);
    expect(tracker.observe(packet)).toEqual([]);
    return packet;
  });
  expect(decoded.map(({ malformed }) => malformed)).toEqual(decoded.map(() => undefined));
  expect(decoded[0].psp).toMatchObject({ spi: 0xb00, phase: 0, version: 0, iv: 0n });
  expect(decoded[0].psp?.bth).toMatchObject({
    operation: 'RC RDMA_WRITE_FIRST',
    destQpn: b.qp.qpn,
    payloadBytes: 1024,
  });
  expect(decoded.some(({ psp }) => psp?.phase === 1)).toBe(true);
});
