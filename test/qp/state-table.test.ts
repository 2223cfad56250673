/** The QP state machine: every pair of states, every attribute of every transition (IBTA vol. 1 table 91 as the specification words it). */

import { describe, expect, it } from 'vitest';
import { QP_STATE_NAMES, type QpStateName } from '../../src/memory/ring/enums.js';
import { checkTransition, type TransitionTable } from '../../src/qp/state.js';
import { RC_TRANSITIONS, UC_TRANSITIONS, UD_TRANSITIONS } from '../../src/qp/transitions.js';
import { LoneNic, PEER_ADDRESS, pattern } from '../support/lone-nic.js';

/** Attribute mask bits, by position, from the specification; written again here on purpose. */
const BIT = {
  STATE: 0,
  CUR_STATE: 1,
  EN_SQD_ASYNC: 2,
  ACCESS_FLAGS: 3,
  PKEY_INDEX: 4,
  PORT: 5,
  QKEY: 6,
  AV: 7,
  PATH_MTU: 8,
  TIMEOUT: 9,
  RETRY_CNT: 10,
  RNR_RETRY: 11,
  RQ_PSN: 12,
  MAX_QP_RD_ATOMIC: 13,
  ALT_PATH: 14,
  MIN_RNR_TIMER: 15,
  SQ_PSN: 16,
  MAX_DEST_RD_ATOMIC: 17,
  PATH_MIG_STATE: 18,
  CAP: 19,
  DEST_QPN: 20,
} as const;
type Attribute = keyof typeof BIT;
const ATTRIBUTES = (Object.keys(BIT) as Attribute[]).filter((name) => name !== 'STATE');

interface Row {
  required: string;
  optional: string;
}

const RC: Record<string, Row> = {
  'RESET INIT': { required: 'PKEY_INDEX PORT ACCESS_FLAGS', optional: '' },
  'INIT INIT': { required: '', optional: 'PKEY_INDEX PORT ACCESS_FLAGS' },
  'INIT RTR': {
    required: 'AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER',
    optional: 'ALT_PATH ACCESS_FLAGS PKEY_INDEX',
  },
  'RTR RTS': {
    required: 'SQ_PSN TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC',
    optional: 'CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE',
  },
  'RTS RTS': { required: '', optional: 'CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER' },
  'RTS SQD': { required: '', optional: 'EN_SQD_ASYNC' },
  'SQD RTS': { required: '', optional: 'CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE' },
  'SQD SQD': {
    required: '',
    optional:
      'CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE AV PORT PKEY_INDEX TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC',
  },
};
/** No timers, no retries, no READs: what is not acknowledged has none of them. */
const UC: Record<string, Row> = {
  'RESET INIT': { required: 'PKEY_INDEX PORT ACCESS_FLAGS', optional: '' },
  'INIT INIT': { required: '', optional: 'PKEY_INDEX PORT ACCESS_FLAGS' },
  'INIT RTR': { required: 'AV PATH_MTU DEST_QPN RQ_PSN', optional: 'ALT_PATH ACCESS_FLAGS PKEY_INDEX' },
  'RTR RTS': { required: 'SQ_PSN', optional: 'CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE' },
  'RTS RTS': { required: '', optional: 'CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE' },
  'RTS SQD': { required: '', optional: 'EN_SQD_ASYNC' },
  'SQD RTS': { required: '', optional: 'CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE' },
  'SQD SQD': { required: '', optional: 'CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE AV PORT PKEY_INDEX' },
  'SQE RTS': { required: '', optional: 'CUR_STATE ACCESS_FLAGS' },
};
const UD_REQUIRED: Record<string, string> = {
  'RESET INIT': 'PKEY_INDEX PORT QKEY',
  'INIT RTR': '',
  'RTR RTS': 'SQ_PSN',
};

const words = (text: string) => (text === '' ? [] : text.split(' ')) as Attribute[];
const maskOf = (names: readonly Attribute[]) => names.reduce((mask, name) => mask | (1 << BIT[name]), 1);
const PAIRS = QP_STATE_NAMES.flatMap((from) => QP_STATE_NAMES.map((to) => [from, to] as const));

interface Connected {
  readonly rows: Record<string, Row>;
  readonly table: TransitionTable;
}
const CONNECTED: Record<string, Connected> = {
  RC: { rows: RC, table: RC_TRANSITIONS },
  UC: { rows: UC, table: UC_TRANSITIONS },
};
const CASES = Object.keys(CONNECTED).flatMap((type) => PAIRS.map(([from, to]) => [type, from, to] as const));

describe.each(CASES)('%s: %s to %s', (type, from, to) => {
  const { rows, table } = CONNECTED[type];
  const toAnywhere = to === 'RESET' || to === 'ERR';
  const row = toAnywhere ? { required: '', optional: '' } : rows[`${from} ${to}`];
  const check = (names: readonly Attribute[]) =>
    checkTransition(table, QP_STATE_NAMES.indexOf(from), QP_STATE_NAMES.indexOf(to), maskOf(names));

  if (row === undefined) {
    it('does not exist', () => {
      expect(() => check(ATTRIBUTES)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_INVALID_STATE' }));
      expect(() => check([])).toThrow(expect.objectContaining({ code: 'ERR_ROCE_INVALID_STATE' }));
    });
    return;
  }
  const required = words(row.required);
  const optional = words(row.optional);

  it('takes what is required, with and without what is optional', () => {
    expect(() => check(required)).not.toThrow();
    expect(() => check([...required, ...optional])).not.toThrow();
    for (const name of optional) expect(() => check([...required, name]), name).not.toThrow();
  });

  it('needs each required attribute', () => {
    for (const name of required) {
      const others = required.filter((other) => other !== name);
      expect(() => check([...others, ...optional]), name).toThrow(
        expect.objectContaining({ code: 'ERR_ROCE_INVALID_ARGUMENT', message: expect.stringContaining(name) }),
      );
    }
  });

  it('refuses every other attribute', () => {
    for (const name of ATTRIBUTES) {
      if (required.includes(name) || optional.includes(name)) continue;
      expect(() => check([...required, name]), name).toThrow(expect.objectContaining({ code: 'ERR_ROCE_CONFLICT' }));
    }
  });
});

describe.each(Object.entries(UD_REQUIRED))('UD: %s', (pair, required) => {
  const [from, to] = pair.split(' ').map((name) => (QP_STATE_NAMES as readonly string[]).indexOf(name));

  it('needs its own attributes and none of RC', () => {
    expect(() => checkTransition(UD_TRANSITIONS, from, to, maskOf(words(required)))).not.toThrow();
    for (const name of words(required)) {
      const others = words(required).filter((other) => other !== name);
      expect(() => checkTransition(UD_TRANSITIONS, from, to, maskOf(others)), name).toThrow();
    }
    expect(() => checkTransition(UD_TRANSITIONS, from, to, maskOf([...words(required), 'AV']))).toThrow();
  });
});

describe('a refused modify', () => {
  it('changes nothing', async () => {
    const nic = await LoneNic.create();
    const before = await nic.qp.query();
    await expect(nic.qp.modify({ timeout: 20 })).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
    await expect(nic.qp.modify({ state: 'INIT' })).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
    await expect(nic.qp.modify({ state: 'SQE' })).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
    await expect(nic.qp.modify({ state: 'ERR', accessFlags: 0 })).rejects.toMatchObject({
      code: 'ERR_ROCE_CONFLICT',
    });
    await expect(nic.qp.modify({ state: 'RTX' as QpStateName })).rejects.toThrow(/state is 'RTX' .*RESET, INIT/);
    expect(await nic.qp.query()).toEqual(before);
    expect(nic.qp.state).toBe('RTS');
  });

  it.each([
    ['destQpn', 0],
    ['destQpn', 0x1000000],
    ['rqPsn', 0x1000000],
    ['maxDestRdAtomic', 129],
    ['minRnrTimer', 32],
    ['pathMtu', 8192],
    ['pathMtu', 1000],
  ])('to RTR with %s = %i is out of range', async (name, value) => {
    const nic = await LoneNic.create({ state: 'INIT' });
    const attr = { destQpn: 5, rqPsn: 0, maxDestRdAtomic: 1, minRnrTimer: 1, pathMtu: 1024 };
    const av = { address: nic.device.address };
    await expect(nic.qp.modify({ state: 'RTR', av, ...attr, [name]: value })).rejects.toMatchObject({
      code: 'ERR_ROCE_OUT_OF_RANGE',
    });
    expect(await nic.state()).toBe('INIT');
    await nic.qp.modify({ state: 'RTR', av, ...attr });
  });
});

describe('what each state allows the application', () => {
  it.each([
    ['RESET', false, false],
    ['INIT', true, false],
    ['RTR', true, false],
    ['RTS', true, true],
  ] as const)('%s: post receive %s, post send %s', async (state, mayReceive, maySend) => {
    const nic = await LoneNic.create({ state });
    const refused = expect.objectContaining({ code: 'ERR_ROCE_INVALID_STATE' });
    const postRecv = () => nic.qp.postRecv({ sges: [nic.mr.sge()] });
    const postSend = () => nic.qp.postSend({ opcode: 'SEND' });
    if (mayReceive) expect(postRecv).not.toThrow();
    else expect(postRecv).toThrow(refused);
    if (maySend) expect(postSend).not.toThrow();
    else expect(postSend).toThrow(refused);
  });

  it('a receive posted in INIT serves the first message in RTR', async () => {
    const nic = await LoneNic.create();
    await nic.qp.modify({ state: 'RESET' });
    await nic.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: 0 });
    nic.qp.postRecv({ wrId: 77, sges: [nic.mr.sge()] });
    await nic.qp.modify({
      state: 'RTR',
      av: { address: PEER_ADDRESS },
      pathMtu: 256,
      destQpn: 0x777777,
      rqPsn: 0xfffffd,
      maxDestRdAtomic: 1,
      minRnrTimer: 1,
    });
    nic.request('SEND_ONLY', 0, { ackReq: true }, pattern(5));
    expect(nic.take()).toMatchObject([{ at: 0, syndrome: 0x1f, msn: 1 }]);
    expect(nic.received()).toMatchObject([{ wrId: 77, status: 0 }]);
  });
});
