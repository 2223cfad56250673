import { expect, test } from 'vitest';
import { SeededRandom } from '../../../../src/core/random.js';
import { Cable } from '../../src/sim/cable.js';
import { EventQueue } from '../../src/sim/event-queue.js';
import { Network } from '../../src/sim/network.js';
import { leafSpine, star } from '../../src/sim/topology.js';
import { FramePool } from '../../src/switch/frame-pool.js';

const LINK = { rateBps: 8e9, delayNs: 1000 };

test('a cable sends frames one after another at its rate, and they arrive in order after its delay', () => {
  const events = new EventQueue();
  const cable = new Cable({ events, ...LINK, pool: new FramePool(100) });
  const arrivals: Array<[timeNs: number, first: number, length: number]> = [];
  cable.connect((bytes, offset, length) => arrivals.push([events.nowNs, bytes[offset], length]));
  // 8 Gb/s is a byte a nanosecond; a frame takes 24 bytes more than it has.
  for (let i = 0; i < 9; i++) {
    const bytes = new Uint8Array(100).fill(i);
    events.at(i * 124, () => expect(cable.send(bytes, 0, 100)).toBe((i + 1) * 124));
  }
  events.run();
  expect(arrivals).toEqual(Array.from({ length: 9 }, (_, i) => [(i + 1) * 124 + 1000, i, 100]));
  expect(cable).toMatchObject({ frames: 9, bytes: 900 });
});

test('a frame that is sent while another one is being sent waits for its turn', () => {
  const events = new EventQueue();
  const cable = new Cable({ events, ...LINK, pool: new FramePool(100) });
  const arrivals: number[] = [];
  cable.connect(() => arrivals.push(events.nowNs));
  const bytes = new Uint8Array(100);
  expect(cable.send(bytes, 0, 100)).toBe(124);
  expect(cable.send(bytes, 0, 60)).toBe(124 + 84);
  events.run();
  expect(arrivals).toEqual([1124, 1208]);
});

test('what is sent may be overwritten while it is under way', () => {
  const events = new EventQueue();
  const cable = new Cable({ events, ...LINK, pool: new FramePool(100) });
  let seen = 0;
  cable.connect((bytes, offset) => {
    seen = bytes[offset];
  });
  const bytes = Uint8Array.of(7);
  cable.send(bytes, 0, 1);
  bytes[0] = 8;
  events.run();
  expect(seen).toBe(7);
});

function networkOf(topology: ReturnType<typeof star>): Network {
  const events = new EventQueue();
  return new Network({ topology, events, random: new SeededRandom(1), pathMtu: 1024, switchConfig: {} });
}

test('stations have addresses of their own, and every link has a cable each way', () => {
  const network = networkOf(star(3, LINK));
  expect([...network.stations.values()].map(({ address }) => address.text)).toEqual([
    '10.0.0.0',
    '10.0.0.1',
    '10.0.0.2',
  ]);
  expect([...network.cables.keys()]).toEqual(['h0>s0', 's0>h0', 'h1>s0', 's0>h1', 'h2>s0', 's0>h2']);
  expect(network.switches.get('s0')!.ports).toEqual(['h0', 'h1', 'h2']);
});

test('leaves of a Clos network have ports to their hosts and to every spine', () => {
  const network = networkOf(leafSpine(2, 2, 2, LINK, LINK));
  expect(network.switches.get('l1')!.ports).toEqual(['h2', 'h3', 'p0', 'p1']);
  expect(network.switches.get('p0')!.ports).toEqual(['l0', 'l1']);
});
