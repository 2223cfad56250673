import { describe, expect, it } from 'vitest';
import { BROADCAST_MAC } from '../../../../src/packet/ethernet.js';
import type { RouteConfig, SwitchConfig } from '../../src/switch/switch-config.js';
import { A, B, C, MACS, plainFrame, roceFrame, SwitchBench } from './traffic.js';

const flows = (count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, i) => roceFrame(A, B, { sourcePort: 0xc000 + i }));

function portsOf(config: SwitchConfig, frames: readonly Uint8Array[]): string[] {
  const bench = new SwitchBench(config);
  return frames.map((frame) => Object.keys(bench.pass(A, frame)).join());
}

describe('routes', () => {
  it('spread flows over a group and keep each flow on one port', () => {
    const routes: RouteConfig[] = [{ to: '10.0.0.2', ports: ['b', 'c', 'd'] }];
    const first = portsOf({ routes }, flows(600));
    expect(portsOf({ routes }, flows(600))).toEqual(first);
    for (const name of ['b', 'c', 'd']) {
      const share = first.filter((port) => port === name).length;
      expect(share).toBeGreaterThan(150);
      expect(share).toBeLessThan(250);
    }
  });

  it('are chosen differently by switches with another seed', () => {
    const routes: RouteConfig[] = [{ to: '10.0.0.2', ports: ['b', 'c'] }];
    const [one, other] = [1, 2].map((hashSeed) => portsOf({ routes, hashSeed }, flows(600)));
    const same = one.filter((port, i) => port === other[i]).length;
    expect(same).toBeGreaterThan(200); // not polarized: neither always the same nor always the other
    expect(same).toBeLessThan(400);
  });

  it('prefer the MAC address, then the longest prefix, then what was learnt', () => {
    const frame = roceFrame(A, B);
    const mac = { to: '02:00:00:00:00:0b', ports: ['d'] };
    const host = { to: '10.0.0.2', ports: ['c'] };
    const net = { to: '10.0.0.0/24', ports: ['b'] };
    const all = { to: '0.0.0.0/0', ports: ['d'] };
    expect(portsOf({ routes: [all, net, host, mac] }, [frame])).toEqual(['d']);
    expect(portsOf({ routes: [all, net, host] }, [frame])).toEqual(['c']);
    expect(portsOf({ routes: [all, net] }, [frame])).toEqual(['b']);
    expect(portsOf({ routes: [all] }, [frame])).toEqual(['d']);
    const bench = new SwitchBench({ routes: [{ to: '10.9.0.0/16', ports: ['d'] }] }).introduce();
    expect(Object.keys(bench.pass(A, frame))).toEqual(['b']);
  });

  it('work over IPv6', () => {
    const frame = roceFrame(A, B, { family: 6 });
    expect(portsOf({ routes: [{ to: 'fd00::/64', ports: ['c'] }] }, [frame])).toEqual(['c']);
    expect(portsOf({ flood: false, routes: [{ to: 'fd01::/64', ports: ['c'] }] }, [frame])).toEqual(['']);
  });

  it('stop what would go round in circles when flooding is off', () => {
    const bench = new SwitchBench({ flood: false, routes: [{ to: '10.0.0.2', ports: ['a', 'a'] }] });
    bench.pass(A, plainFrame(BROADCAST_MAC, MACS[A]));
    bench.pass(A, plainFrame(MACS[C], MACS[A]));
    bench.pass(A, roceFrame(A, B));
    expect(bench.counters('a')).toMatchObject({ rx_dropped_no_route: 2, rx_dropped_same_port: 1 });
    expect(bench.switch.bufferedPackets).toBe(0);
  });

  it.each([
    [{ to: '10.0.0.0/33', ports: ['b'] }, /not a destination/],
    [{ to: '10.0.0.0/x', ports: ['b'] }, /not a destination/],
    [{ to: 'nowhere', ports: ['b'] }, /IP address/],
    [{ to: '10.0.0.1', ports: ['z'] }, /no such port/],
    [{ to: '10.0.0.1', ports: [] }, /no port/],
  ])('are refused when they make no sense: %j', (route, message) => {
    expect(() => new SwitchBench({ routes: [route] })).toThrow(message);
  });
});
