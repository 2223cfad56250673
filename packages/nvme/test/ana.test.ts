/** A target with two ports, in virtual time: hosts hear how well each of them reaches the namespaces. */

import { beforeEach, expect, it } from 'vitest';
import { ANA_STATES, type AnaState } from '../src/ana.js';
import { ADMIN, FEATURE, IO, LOG } from '../src/opcodes.js';
import { STATUS } from '../src/status.js';
import { Host } from './hosts.js';
import { TcpWorld } from './world.js';

let world: TcpWorld;
/** Two paths of one host. */
let first: Host;
let second: Host;
beforeEach(async () => {
  world = new TcpWorld();
  first = await Host.connect(world, 1, 1);
  second = await Host.connect(world, 1, 2);
});

async function stateAt(path: Host): Promise<{ state: number; changes: number; nsids: number[] }> {
  const page = await path.log(LOG.ANA, 56);
  expect([page.readUInt16LE(8), page.readUInt32LE(16)]).toEqual([1, 1]);
  const nsids = Array.from({ length: page.readUInt32LE(20) }, (_, i) => page.readUInt32LE(48 + 4 * i));
  return { state: page[32], changes: Number(page.readBigUInt64LE(0)), nsids };
}

it('each port has a state of its own, and hosts read it', async () => {
  expect(await stateAt(first)).toEqual({ state: 1, changes: 0, nsids: [1] });
  world.target.setAnaState(1, 'inaccessible');
  expect(await stateAt(first)).toEqual({ state: 3, changes: 1, nsids: [1] });
  expect(await stateAt(second)).toEqual({ state: 1, changes: 0, nsids: [1] });
  world.target.setAnaState(1, 'inaccessible');
  expect((await stateAt(first)).changes).toBe(1);
});

it.each<[AnaState, number]>([
  ['optimized', 0],
  ['non-optimized', 0],
  ['inaccessible', STATUS.ANA_INACCESSIBLE],
  ['persistent-loss', STATUS.ANA_PERSISTENT_LOSS],
  ['change', STATUS.ANA_TRANSITION],
])('a port that is %s answers I/O with status %i, which lets hosts try the other', async (state, status) => {
  world.target.setAnaState(1, state);
  expect([await first.write(), await first.read(), await first.register(11)]).toEqual([status, status, status]);
  expect(await first.io.status({ opcode: IO.FLUSH, nsid: 0xffff_ffff })).toBe(status);
  expect([await second.write(), await second.read()]).toEqual([0, 0]);
  expect((await stateAt(first)).state).toBe(ANA_STATES[state]);
});

it('hosts of the port are told of a change if they have asked for it, and only they', async () => {
  const asked = (path: Host) => {
    let isTold = false;
    const told = path.admin.queue.execute({ opcode: ADMIN.ASYNC_EVENT_REQUEST }).then(({ result }) => {
      isTold = true;
      return result;
    });
    return { told, isTold: () => isTold };
  };
  const turnOn = { opcode: ADMIN.SET_FEATURES, dwords: [FEATURE.ASYNC_EVENT_CONFIGURATION, 0x800] };
  await first.admin.send(turnOn);
  await second.admin.send(turnOn);
  const silent = await Host.connect(world, 2, 1);
  const [a, b, c] = [first, second, silent].map(asked);
  world.target.setAnaState(1, 'non-optimized');
  expect(await world.until(a.told)).toBe(0x0c_03_02n);
  await world.pass(1e9);
  expect([b.isTold(), c.isTold()]).toEqual([false, false]);
});

it('gives groups without namespaces where the host asks for that', async () => {
  const into = Buffer.alloc(48);
  await first.admin.send({ opcode: ADMIN.GET_LOG_PAGE, dwords: [LOG.ANA | (1 << 8) | (11 << 16)], into });
  expect([into.readUInt32LE(20), into[32]]).toEqual([0, 1]);
});

it('Identify says what hosts need for it', async () => {
  const identify = async (cns: number) => {
    const into = Buffer.alloc(4096);
    await first.admin.send({ opcode: ADMIN.IDENTIFY, nsid: cns === 1 ? 0 : 1, dwords: [cns], into });
    return into;
  };
  const controller = await identify(1);
  expect(controller[76] & 0x08).toBe(0x08);
  expect(controller[343] & 0x1f).toBe(0x1f);
  expect([controller.readUInt32LE(344), controller.readUInt32LE(348)]).toEqual([1, 1]);
  expect((await identify(0)).readUInt32LE(92)).toBe(1);
  expect((await identify(8)).readUInt32LE(4)).toBe(1);
});
