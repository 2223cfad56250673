import { describe, expect, it } from 'vitest';
import { dialFixed } from '../../src/cm/fixed-channel.js';
import { FixedListener } from '../../src/cm/fixed-listener.js';
import {
  encodeDestination,
  exchangeAsPingpongClient,
  exchangeAsPingpongServer,
  parseDestination,
} from '../../src/cm/pingpong-exchange.js';
import { exchangeAsSrqClient, exchangeAsSrqServer } from '../../src/cm/srq-pingpong-exchange.js';
import { IpAddress } from '../../src/packet/address.js';
import { tcpPair } from './tcp-pair.js';

const LINE = '0000:000011:123456:00000000000000000000ffffc0000201\0';
const OWN = { qpn: 0x11, psn: 0x123456, address: IpAddress.parse('192.0.2.1') };

describe('the line of ibv_rc_pingpong', () => {
  it('has 52 bytes', () => {
    expect(Buffer.from(encodeDestination(OWN)).toString('latin1')).toBe(LINE);
    expect(encodeDestination(OWN)).toHaveLength(52);
  });

  it('is read back, also with an IPv6 GID', () => {
    expect(parseDestination(Buffer.from(LINE))).toEqual(OWN);
    const v6 = { qpn: 0xffffff, psn: 0, address: IpAddress.parse('fd77::1') };
    expect(parseDestination(encodeDestination(v6))).toEqual(v6);
  });

  it.each([
    ['another separator', LINE.replaceAll(':', ';'), 'does not speak'],
    ['no zero byte', LINE.replace('\0', '\n'), 'does not speak'],
    ['no GID', `${LINE.slice(0, 19)}${'0'.repeat(32)}\0`, '-g'],
  ])('is refused with %s', (_, line, words) => {
    expect(() => parseDestination(Buffer.from(line))).toThrow(words);
  });
});

describe('the exchange', () => {
  const other = { qpn: 0x12, psn: 0xabcdef, address: IpAddress.parse('192.0.2.2') };

  it('tells both sides of each other; the server is ready before the client knows', async () => {
    const { client, server } = await tcpPair();
    const steps: string[] = [];
    const [atClient, atServer] = await Promise.all([
      exchangeAsPingpongClient(client, OWN).then((peer) => {
        steps.push('client');
        return peer;
      }),
      exchangeAsPingpongServer(server, other, async () => {
        steps.push('prepared');
      }),
    ]);
    expect([atClient, atServer]).toEqual([other, OWN]);
    expect(steps).toEqual(['prepared', 'client']);
  });

  it('knows ibv_srq_pingpong by the second line, which comes unasked', async () => {
    const { client, server } = await tcpPair();
    for (let line = 0; line < 16; line++) client.write(encodeDestination(OWN));
    const asking = exchangeAsPingpongServer(server, other, async () => {});
    await expect(asking).rejects.toThrow('the peer is ibv_srq_pingpong');
  });

  it('fails when the peer hangs up, and says what was missing', async () => {
    const { client, server } = await tcpPair();
    server.close();
    await expect(exchangeAsPingpongClient(client, OWN)).rejects.toThrow(/waiting for its QP.*closed/);
  });

  it('fails when the peer says nothing', async () => {
    const { client } = await tcpPair();
    await expect(client.read(52, 'its QP', 20)).rejects.toThrow('nothing for 0.02 s');
  });

  it('fails when the peer talks without end', async () => {
    const { client, server } = await tcpPair();
    server.write(new Uint8Array(70_000));
    await expect(client.read(100_000, 'its QP')).rejects.toThrow('more than');
  });

  it('fails when nobody listens', async () => {
    const listener = await FixedListener.open(0, { host: '127.0.0.1' });
    const { port } = listener;
    listener.close();
    await expect(dialFixed('127.0.0.1', port)).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  });
});

describe('the exchange of ibv_srq_pingpong', () => {
  const many = (count: number, first: number) => Array.from({ length: count }, (_, k) => ({ ...OWN, qpn: first + k }));

  it('has 256 lines each way, those behind the last queue pair empty', async () => {
    const { client, server } = await tcpPair();
    const asking = exchangeAsSrqClient(client, many(3, 0x20));
    const lines = (await server.read(256 * 52, 'lines')).toString('latin1');
    server.unread(Buffer.from(lines, 'latin1'));
    expect(lines.slice(2 * 52, 4 * 52)).toBe(
      `0000:000022:123456:00000000000000000000ffffc0000201\0${'0000:000000:000000:'}${'0'.repeat(32)}\0`,
    );
    const atServer = await exchangeAsSrqServer(server, many(3, 0x40), async () => {});
    expect([await asking, atServer]).toEqual([many(3, 0x40), many(3, 0x20)]);
  });

  it('is refused with another number of queue pairs', async () => {
    const { client, server } = await tcpPair();
    exchangeAsSrqClient(client, many(3, 0x20)).catch(() => {});
    const asked = exchangeAsSrqServer(server, many(4, 0x40), async () => {});
    await expect(asked).rejects.toThrow('the peer has 3 queue pairs, and this side 4 (give both sides the same -q)');
    server.abort();
    client.abort();
  });
});
