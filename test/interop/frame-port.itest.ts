/**
 * A guest plugged into `rocev2 switch` by QEMU's `-netdev dgram`, and our endpoint on another port of it: Ethernet, ARP, neighbour
 * discovery, IP and UDP are all ours, no kernel between, and nobody needs root.
 */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { freeUdpPorts } from '../support/free-port.js';
import { cell } from './support/cell.js';
import type { RunningCommand } from './support/command.js';
import { describeOnRig } from './support/describe-on-rig.js';
import { Rig } from './support/rig.js';
import { buildRocev2, jsonResult, rocev2, saysOnStderr } from './support/rocev2.js';

const PORT = 7174;
const OURS = { 4: '10.77.0.1', 6: 'fd77::1' } as const;
const NOBODY = { 4: '10.77.0.99', 6: 'fd77::99' } as const;

/** UDP ports: the guest's, the one it sends to, a switch port for us, ours. */
interface Plugs {
  readonly guest: number;
  readonly guestsPeer: number;
  readonly switchPort: number;
  readonly us: number;
}

interface Wire {
  readonly from: number;
  readonly to: number;
}

const at = (port: number) => `127.0.0.1:${port}`;

for (const mtu of [1500, 9000]) {
  await describeOnRig(`a guest on rocev2 switch, MTU ${mtu}`, 'dgram', () => {
    let rig: Rig;
    let plugs: Plugs;
    let running: RunningCommand[] = [];

    beforeAll(async () => {
      await buildRocev2();
      const [guest, guestsPeer, switchPort, us] = await freeUdpPorts(4);
      plugs = { guest, guestsPeer, switchPort, us };
      rig = await Rig.start({ mtu, dgram: [{ localPort: guest, remotePort: guestsPeer }] });
    });
    afterEach(async () => {
      await Promise.all(running.map((command) => command.stop()));
      running = [];
    });
    afterAll(() => rig?.stop());

    const theirs = (family: 4 | 6) => (family === 4 ? rig.guests[0].ip4 : rig.guests[0].ip6);

    function start(args: readonly string[]): RunningCommand {
      const command = rocev2(args);
      running.push(command);
      return command;
    }

    async function startSwitch(...options: string[]): Promise<RunningCommand> {
      const guest = `guest=${at(plugs.guestsPeer)},${at(plugs.guest)}`;
      const wire = start(['switch', '--port', `us=${at(plugs.switchPort)}`, '--port', guest, '--json', ...options]);
      await saysOnStderr(wire, 'Ctrl-C');
      return wire;
    }

    /** What the switch counted. */
    async function ended(wire: RunningCommand) {
      const { stdout } = await wire.stop('SIGINT');
      return JSON.parse(stdout) as { rules: { hits: number }[]; ports: { counters: Record<string, number> }[] };
    }

    /** Our rping, between two ports: ours and the switch's, unless said otherwise. */
    function ourPing(args: readonly string[], { from, to }: Wire = { from: plugs.us, to: plugs.switchPort }) {
      const wire = ['--frame', at(to), '--frame-port', `${from}`, '--link-mtu', `${mtu}`];
      return start(['rping', ...args, ...wire, '-V', '--json']);
    }

    async function asClient(family: 4 | 6, count: number, size: number, wire?: Wire) {
      const server = await rig.background('server', `rping -s -a ${theirs(family)} -S ${size} -V`);
      await rig.listening(PORT);
      const numbers = ['-C', `${count}`, '-S', `${size}`];
      const result = await jsonResult(
        ourPing(['-c', '-a', theirs(family), '--bind', OURS[family], ...numbers], wire),
        100_000,
      );
      await server.wait();
      return result;
    }

    async function asServer(family: 4 | 6, count: number, size: number, wire?: Wire) {
      const server = ourPing(['-s', '-a', OURS[family], '-C', `${count}`, '-S', `${size}`], wire);
      await saysOnStderr(server, 'listening');
      const client = await rig.exec(`rping -c -a ${OURS[family]} -C ${count} -S ${size} -V`, { timeoutMs: 100_000 });
      expect(client.exitCode, client.stderr).toBe(0);
      return jsonResult(server);
    }

    for (const family of [4, 6] as const) {
      const facts = { tool: 'rping -V, frame port', family, mtu: mtu === 1500 ? 1024 : 4096 };

      cell({ ...facts, role: 'client', what: 'through rocev2 switch' }, async () => {
        const wire = await startSwitch();
        expect(await asClient(family, 100, 64)).toMatchObject({ iterations: 100, verified: true });
        expect(await asClient(family, 30, 65_535)).toMatchObject({ iterations: 30, verified: true });
        expect((await rig.exec(`ip neigh show ${OURS[family]}`)).stdout).toMatch(/lladdr/);
        const [us, guest] = (await ended(wire)).ports.map(({ counters }) => counters);
        expect(us?.['tx_bytes']).toBeGreaterThan(30 * 65_535);
        expect(guest?.['tx_bytes']).toBeGreaterThan(30 * 65_535);
      });

      cell({ ...facts, role: 'server', what: 'through rocev2 switch' }, async () => {
        await startSwitch();
        expect(await asServer(family, 100, 64)).toMatchObject({ iterations: 100, verified: true });
        expect(await asServer(family, 30, 65_535)).toMatchObject({ iterations: 30, verified: true });
      });

      if (mtu === 9000) continue;
      cell({ ...facts, role: 'both', what: 'through rocev2 switch, one packet in 200 lost' }, async () => {
        const wire = await startSwitch('--loss', 'random=0.005');
        expect(await asClient(family, 20, 65_535)).toMatchObject({ iterations: 20, verified: true });
        expect(await asServer(family, 20, 65_535)).toMatchObject({ iterations: 20, verified: true });
        expect((await ended(wire)).rules[0]?.hits).toBeGreaterThan(0);
      });
    }

    if (mtu === 9000) return;
    cell(
      { tool: 'rping -V, frame port', role: 'both', family: 4, what: 'straight into the guest, no switch' },
      async () => {
        const wire = { from: plugs.guestsPeer, to: plugs.guest };
        expect(await asClient(4, 100, 5000, wire)).toMatchObject({ iterations: 100, verified: true });
        expect(await asServer(4, 100, 5000, wire)).toMatchObject({ iterations: 100, verified: true });
      },
    );

    describe('neighbours', () => {
      test.each([4, 6] as const)('IPv%i: our address is answered for, and no other', async (family) => {
        await startSwitch();
        const server = ourPing(['-s', '-a', OURS[family]]);
        await saysOnStderr(server, 'listening');
        await rig.exec(`ip neigh flush dev eth0; ping -c 1 -W 1 ${OURS[family]}; ping -c 1 -W 1 ${NOBODY[family]}`);
        expect((await rig.exec(`ip neigh show ${OURS[family]}`)).stdout).toMatch(
          /lladdr [0-9a-f:]{17} .*(REACHABLE|DELAY|STALE)/,
        );
        expect((await rig.exec(`ip neigh show ${NOBODY[family]}`)).stdout).not.toContain('lladdr');
      });
    });
  });
}
