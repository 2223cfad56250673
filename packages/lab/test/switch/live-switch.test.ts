import { createSocket, type Socket } from 'node:dgram';
import { describe, expect, it } from 'vitest';
import { parseUdpEndpoint } from '../../../../src/dgram-ext/udp-endpoint.js';
import { BROADCAST_MAC, parseMac, writeEthernet } from '../../../../src/packet/ethernet.js';
import { until } from '../../../../test/contracts/port-contract.js';
import { openLiveSwitch, parseSwitchPort } from '../../src/live/live-switch.js';

const ANY_PORT = parseUdpEndpoint('127.0.0.1:0');

async function openSocket(): Promise<{ socket: Socket; frames: Uint8Array[] }> {
  const socket = createSocket('udp4');
  const frames: Uint8Array[] = [];
  socket.on('message', (bytes) => frames.push(bytes));
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return { socket, frames };
}

function broadcast(mark: number): Uint8Array {
  const bytes = new Uint8Array(60).fill(mark);
  writeEthernet(bytes, 0, BROADCAST_MAC, parseMac(`02:00:00:00:00:0${mark}`), 0x88b5);
  return bytes;
}

describe('live switch', () => {
  it('learns its peers, hears nobody else, and moves whole frames', async () => {
    const wire = await openLiveSwitch({ ports: ['a', 'b'].map((name) => ({ name, local: ANY_PORT })) });
    const [left, right, stranger] = await Promise.all([openSocket(), openSocket(), openSocket()]);
    right.socket.send(broadcast(2), wire.local('b').port, '127.0.0.1');
    await until(() => wire.counters['b'].rx_packets === 1, 'the first frame');
    left.socket.send(broadcast(1), wire.local('a').port, '127.0.0.1');
    await until(() => right.frames.length === 1, 'the frame');
    expect(Uint8Array.from(right.frames[0])).toEqual(broadcast(1));
    stranger.socket.send(broadcast(3), wire.local('b').port, '127.0.0.1');
    await until(() => wire.counters['b'].rx_unknown_peers === 1, 'the stranger');
    expect(wire.counters['b'].rx_packets).toBe(1);
    expect(wire.counters['a']).toMatchObject({ tx_packets: 1, tx_errors: 1 }); // before anybody was there
    await Promise.all([wire.close(), wire.close()]);
    for (const { socket } of [left, right, stranger]) socket.close();
  });

  it('leaves nothing open when one of its sockets is taken', async () => {
    const taken = await openSocket();
    const busy = parseUdpEndpoint(`127.0.0.1:${taken.socket.address().port}`);
    const ports = [
      { name: 'a', local: ANY_PORT },
      { name: 'b', local: busy },
    ];
    await expect(openLiveSwitch({ ports })).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
    taken.socket.close();
  });

  it('names a port that does not exist', async () => {
    const wire = await openLiveSwitch({ ports: ['a', 'b'].map((name) => ({ name, local: ANY_PORT })) });
    expect(() => wire.local('z')).toThrow(/no port 'z'/);
    await wire.close();
  });
});

describe('switch port notation', () => {
  it('reads name, local and remote', () => {
    expect(parseSwitchPort('a=127.0.0.1:5001')).toMatchObject({ name: 'a', local: { port: 5001 } });
    const port = parseSwitchPort('guest1=[::1]:5001,[::1]:6001');
    expect(port).toMatchObject({ name: 'guest1', local: { port: 5001 }, remote: { port: 6001 } });
    expect(port.remote?.host.text).toBe('::1');
  });

  it.each(['a', 'a=', 'a=1.2.3.4', 'a=1.2.3.4:70000', 'a=localhost:5', '=127.0.0.1:5', 'a=::1:5', 'a=127.0.0.1:5,x'])(
    'refuses %s',
    (text) => {
      expect(() => parseSwitchPort(text)).toThrow(/write|give/);
    },
  );
});
