/**
 * What a program passes is checked at the door, attribute by attribute: a value that is none is refused with the name of the attribute and its
 * range, nothing is changed, and nothing is cut to the bits of its field.
 */

import { describe, expect, it } from 'vitest';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import type { QueuePairInit } from '../../src/verbs/queue-pair.js';
import { LoneNic, type LoneNicOptions, PEER_ADDRESS, PEER_QPN } from '../support/lone-nic.js';

/** What no attribute takes. `undefined` stands for an attribute that was not given, which many take. */
const NONSENSE: readonly unknown[] = [
  ...[Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5, 2 ** 32, 2 ** 53, 1n, '1', 'fast', '', null],
  ...[{}, [], [1], Object.create(null), Symbol('1'), () => 1],
];
const BOOLEANS = [true, false];

const refusal = (name: string) =>
  expect.objectContaining({
    name: 'RoceError',
    code: expect.stringMatching(/^ERR_ROCE_(OUT_OF_RANGE|INVALID_ARGUMENT|UNKNOWN_NAME)$/),
    message: expect.stringContaining(name),
    hint: expect.stringMatching(/must be|there (are|is)/),
  });

const label = (value: unknown) => (Object(value) === value ? 'an object' : String(value));

type State = NonNullable<LoneNicOptions['state']>;

/** A modify that is right: what is wrong with one of its attributes alone must be the cause of the refusal. */
const TO_INIT: QpAttr = { state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: 0 };
const TO_RTR: QpAttr = {
  state: 'RTR',
  av: { address: PEER_ADDRESS, udpPort: 4791, dscp: 0, ecn: 2 },
  pathMtu: 1024,
  destQpn: PEER_QPN,
  rqPsn: 5,
  maxDestRdAtomic: 1,
  minRnrTimer: 12,
  recovery: { name: 'go-back-n' },
  inflightPackets: 64,
  remoteSourcePort: 'learn',
  rateControl: { name: 'none' },
};
const TO_RTS: QpAttr = {
  state: 'RTS',
  sqPsn: 5,
  timeout: 14,
  retryCnt: 7,
  rnrRetry: 7,
  maxRdAtomic: 1,
  totalTimeout: 1,
};

/** From state, the right modify, the attribute, values besides nonsense that it does not take. */
const ATTRIBUTES: ReadonlyArray<readonly [from: State, good: QpAttr, name: keyof QpAttr, ...values: unknown[]]> = [
  ['RESET', TO_INIT, 'state', ...BOOLEANS, 'rtr', 3],
  ['RESET', TO_INIT, 'pkeyIndex', ...BOOLEANS, 1, 65_535],
  ['RESET', TO_INIT, 'port', ...BOOLEANS, 0, 2, 255],
  ['RESET', TO_INIT, 'accessFlags', ...BOOLEANS, 64, 0xffff_ffff],
  ['INIT', TO_RTR, 'av', ...BOOLEANS, 4791],
  ['INIT', TO_RTR, 'pathMtu', ...BOOLEANS, 0, 1000, 8192],
  ['INIT', TO_RTR, 'destQpn', ...BOOLEANS, 0, 2 ** 24, 2 ** 24 + 5, 2 ** 32 + 5],
  ['INIT', TO_RTR, 'rqPsn', ...BOOLEANS, 2 ** 24, 2 ** 32 + 5],
  ['INIT', TO_RTR, 'maxDestRdAtomic', ...BOOLEANS, 1.7, 129],
  ['INIT', TO_RTR, 'minRnrTimer', ...BOOLEANS, 32],
  ['INIT', TO_RTR, 'recovery', ...BOOLEANS, 5],
  ['INIT', TO_RTR, 'inflightPackets', ...BOOLEANS, 0, 1],
  ['INIT', TO_RTR, 'remoteSourcePort', ...BOOLEANS, 65_536, 65_537],
  ['INIT', TO_RTR, 'rateControl', ...BOOLEANS, 5],
  ['RTR', TO_RTS, 'sqPsn', ...BOOLEANS, 2 ** 24, 2 ** 32 + 5],
  ['RTR', TO_RTS, 'timeout', ...BOOLEANS, 32],
  ['RTR', TO_RTS, 'totalTimeout', ...BOOLEANS, 32],
  ['RTR', TO_RTS, 'retryCnt', ...BOOLEANS, 8],
  ['RTR', TO_RTS, 'rnrRetry', ...BOOLEANS, 8],
  ['RTR', TO_RTS, 'maxRdAtomic', ...BOOLEANS, 1.7, 129],
  ['RTS', { state: 'SQD', enSqdAsyncNotify: false }, 'enSqdAsyncNotify', 2],
];

async function expectRefused(nic: LoneNic, attr: unknown, name: string, value: unknown): Promise<void> {
  const before = await nic.qp.query();
  await expect(nic.qp.modify(attr as QpAttr), `${name}: ${label(value)}`).rejects.toEqual(refusal(name));
  expect(await nic.qp.query()).toEqual(before);
}

describe('an attribute of modify that is none is refused by name, and nothing is changed', () => {
  it.each(ATTRIBUTES.map(([from, good, name, ...values]) => [name, from, good, values] as const))(
    '%s, from %s',
    async (name, state, good, values) => {
      const nic = await LoneNic.create({ state });
      for (const value of [...NONSENSE, ...values]) {
        await expectRefused(nic, { ...good, [name]: value }, name === 'rateControl' ? 'rate control' : name, value);
      }
      await nic.qp.modify(good); // The same without the nonsense is right.
      expect((await nic.qp.query()).state).toBe(good.state);
    },
  );

  it.each([
    ['udpPort', 65_536, 70_000],
    ['dscp', 64, 300],
    ['ecn', 4],
    ['address', 4791],
  ])('in the address vector: %s', async (name, ...values) => {
    const nic = await LoneNic.create({ state: 'INIT' });
    for (const value of [...NONSENSE, ...BOOLEANS, ...values]) {
      await expectRefused(nic, { ...TO_RTR, av: { ...TO_RTR.av, [name]: value } }, name, value);
    }
    await expectRefused(nic, { ...TO_RTR, av: {} }, 'address', undefined);
    await nic.qp.modify(TO_RTR);
  });

  it('a Q_Key of datagrams', async () => {
    const nic = await LoneNic.create({ state: 'RESET' });
    const qp = await nic.pd.createQp({ type: 'UD', sendCq: nic.cq });
    const good = { state: 'INIT', pkeyIndex: 0, port: 1, qkey: 0xffff_ffff } as const;
    for (const qkey of [...NONSENSE, ...BOOLEANS]) {
      await expect(qp.modify({ ...good, qkey: qkey as number }), label(qkey)).rejects.toEqual(refusal('qkey'));
      expect((await qp.query()).state).toBe('RESET');
    }
    await qp.modify(good);
  });

  it('a parameter of a scheme', async () => {
    const nic = await LoneNic.create({ state: 'INIT' });
    for (const value of NONSENSE) {
      if (value === 2 ** 32) continue; // A rate.
      const attr = { ...TO_RTR, rateControl: { name: 'dcqcn', linkRateBps: value } };
      await expectRefused(nic, attr, 'linkRateBps', value);
    }
    await nic.qp.modify(TO_RTR);
  });

  it('attributes that are none at all', async () => {
    const nic = await LoneNic.create();
    for (const attr of [undefined, null, 'RTR', 3]) await expectRefused(nic, attr, 'modify', attr);
  });
});

describe('what makes an object is refused by name', () => {
  it.each([
    ['type', 'XRC', 'constructor', 2],
    ['maxSendWr', 0, 2 ** 20 + 1],
    ['maxRecvWr', 0, 2 ** 20 + 1],
    ['maxSendSge', 0, 33],
    ['maxRecvSge', 0, 33],
    ['maxInlineBytes', 2 ** 20],
    ['sendCq', 7],
    ['recvCq', 7],
    ['srq', 7],
    ['signalAll', 1, 0],
  ])('createQp: %s', async (name, ...values) => {
    const { pd, cq } = await LoneNic.create({ state: 'RESET' });
    const booleans = name === 'signalAll' ? [] : BOOLEANS;
    for (const value of [...NONSENSE, ...booleans, ...values]) {
      const init = { sendCq: cq, [name]: value } as unknown as QueuePairInit;
      await expect(pd.createQp(init), label(value)).rejects.toEqual(refusal(name));
    }
    await pd.createQp({ sendCq: cq, signalAll: true });
  });

  it('createCq, createSrq and the limit of a shared receive queue', async () => {
    const { device, pd } = await LoneNic.create({ state: 'RESET' });
    const srq = await pd.createSrq({ depth: 16 });
    for (const value of [...NONSENSE, ...BOOLEANS]) {
      const number = value as number;
      await expect(device.createCq(number), label(value)).rejects.toEqual(refusal('depth'));
      await expect(pd.createSrq({ depth: number }), label(value)).rejects.toEqual(refusal('depth'));
      await expect(pd.createSrq({ depth: 16, maxSge: number }), label(value)).rejects.toEqual(refusal('maxSge'));
      await expect(srq.setLimit(number), label(value)).rejects.toEqual(refusal('limit'));
    }
    for (const depth of [0, 2 ** 20 + 1]) await expect(device.createCq(depth)).rejects.toEqual(refusal('depth'));
  });

  it.each([
    ['udpPort', 70_000],
    ['dscp', 64, 300],
  ])('createAh: %s', async (name, ...values) => {
    const { pd } = await LoneNic.create({ state: 'RESET' });
    for (const value of [...NONSENSE, ...BOOLEANS, ...values]) {
      await expect(pd.createAh(PEER_ADDRESS, { [name]: value }), label(value)).rejects.toEqual(refusal(name));
      await expect(pd.createAh(value as never), label(value)).rejects.toEqual(refusal('address'));
    }
    await pd.createAh(PEER_ADDRESS, { dscp: 63, udpPort: 65_535 });
  });

  it.each([
    ['remoteQpn', 2 ** 24, 2 ** 32 + 1],
    ['remoteQkey', 2 ** 32],
    ['immediate', 2 ** 32],
  ])('postSend of a datagram: %s', async (name, ...values) => {
    const nic = await LoneNic.create({ state: 'RESET' });
    const qp = await nic.pd.createQp({ type: 'UD', sendCq: nic.cq });
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: 1 });
    await qp.modify({ state: 'RTR' });
    await qp.modify({ state: 'RTS', sqPsn: 0 });
    const ah = await nic.pd.createAh(PEER_ADDRESS);
    const good = { opcode: 'SEND_WITH_IMM', ah, remoteQpn: 2 ** 24 - 1, remoteQkey: 1, immediate: 1 } as const;
    const room = qp.sendRoom;
    for (const value of [...NONSENSE, ...BOOLEANS, ...values]) {
      expect(() => qp.postSend({ ...good, [name]: value as number }), label(value)).toThrow(refusal(name));
    }
    expect(qp.sendRoom).toBe(room);
  });
});
