import {
  NAK_PSN_SEQUENCE,
  RC_READ_REQUEST,
  RC_READ_RESPONSE_FIRST,
  RC_READ_RESPONSE_LAST,
  RC_READ_RESPONSE_MIDDLE,
  RC_READ_RESPONSE_ONLY,
  RC_SEND_ONLY,
  RC_WRITE_ONLY,
  RNR_TIMER_NS,
  SYNDROME_RNR,
} from 'rocev2/internal/packet';
import type { Order } from '../order.js';
import {
  type AnswerPacket,
  acknowledge,
  type CaseConnection,
  refuse,
  request,
  type Step,
  silence,
  silenceFor,
  type TestCase,
} from '../step.js';

/** Local ACK timeout: 4.096 us * 2^14, which is 67 ms. */
const TIMEOUT_CODE = 14;
const TIMEOUT_MS = 67.1;
/**
 * The timer fires between T and 4 T (C9-140); both ends have separate clocks, and the first copy may have been late.
 */
const AFTER_TIMEOUT = { notBeforeMs: 0.9 * TIMEOUT_MS - 1, notAfterMs: 4.2 * TIMEOUT_MS + 20 };
/** Nothing comes, even if a timer runs. */
const OVER: Step = silenceFor(4.2 * TIMEOUT_MS);
/** Where the timer must not fire: 1.1 s. */
const LONG_TIMEOUT = { timeout: 18 };
const LONG_TIMEOUT_MS = 16 * TIMEOUT_MS;
/** RNR timer 24: 41 ms. */
const RNR_CODE = 24;
const RNR_MS = RNR_TIMER_NS[RNR_CODE] / 1e6;
const AFTER_RNR = { notBeforeMs: 0.95 * RNR_MS - 1, notAfterMs: RNR_MS + 4.2 * LONG_TIMEOUT_MS };
const BYTES = 8;

function ordered(operation: Order['operation'], count: number, details: Partial<Order> = {}): () => CaseConnection {
  const timers = { timeout: TIMEOUT_CODE, retryCount: 7, rnrRetryCount: 7 };
  return () => ({ order: { operation, bytes: BYTES, count, ...timers, ...details } });
}

function writes(...psns: readonly number[]): Step[] {
  return psns.map((at) => request(RC_WRITE_ONLY, at));
}

/** Not before which time is the business of one case: on a busy machine the copy before may have come late. */
function repeated(at: number): Step {
  return request(RC_WRITE_ONLY, at, { notAfterMs: AFTER_TIMEOUT.notAfterMs });
}

function noReceive(at: number): Step {
  return refuse(at, SYNDROME_RNR | RNR_CODE, at);
}

function response(opcode: number, at: number, bytes: number): Step {
  const packet: AnswerPacket = { opcode, at, bytes, msn: 1 };
  return { do: 'answer', packet };
}

/** Two READs of four packets, one at a time: the second shows that the first is complete. */
function twoReads(mtu: number): CaseConnection {
  return { ...ordered('RDMA_READ', 2, { bytes: 4 * mtu })(), responderResources: 1 };
}

function readRest(mtu: number, opcode: number): Step[] {
  return [
    request(RC_READ_REQUEST, 0, { length: 4 * mtu }),
    response(RC_READ_RESPONSE_FIRST, 0, mtu),
    response(RC_READ_RESPONSE_MIDDLE, 2, mtu),
    response(RC_READ_RESPONSE_LAST, 3, mtu),
    request(RC_READ_REQUEST, 1, { length: 3 * mtu, place: mtu, notAfterMs: AFTER_TIMEOUT.notAfterMs }),
    response(opcode, 1, mtu),
    response(RC_READ_RESPONSE_MIDDLE, 2, mtu),
    response(RC_READ_RESPONSE_LAST, 3, mtu),
    request(RC_READ_REQUEST, 4, { length: 4 * mtu }),
  ];
}

/** A quarter of a timeout passes, and the earlier acknowledgement is repeated. */
function staleAck(): Step[] {
  return [{ do: 'pause', milliseconds: TIMEOUT_MS / 4 }, acknowledge(-1, 0)];
}

function times<T>(count: number, make: () => readonly T[]): T[] {
  return Array.from({ length: count }, make).flat();
}

export const REQUESTER_CASES: readonly TestCase[] = [
  {
    name: 'requester/ghost-ack',
    rules: [36],
    about: 'The tester acknowledges a PSN that the target has not sent. The WRITE comes again after the timeout.',
    connect: ordered('RDMA_WRITE', 1),
    steps: () => [...writes(0), acknowledge(5, 1), repeated(0), acknowledge(0, 1), OVER],
  },
  {
    name: 'requester/nak',
    rules: [47],
    about: 'A NAK names the third of four WRITEs. It is the next to come, and the two before it do not come again.',
    connect: ordered('RDMA_WRITE', 4, LONG_TIMEOUT),
    steps: () => [...writes(0, 1, 2, 3), refuse(2, NAK_PSN_SEQUENCE, 2), ...writes(2, 3), acknowledge(3, 4), silence],
  },
  {
    name: 'requester/lost-again',
    rules: [50],
    about: 'What a NAK asks for is lost a second time. The timer brings it.',
    // A NAK that comes late must not meet a timer that has run out.
    connect: ordered('RDMA_WRITE', 2, { timeout: TIMEOUT_CODE + 2 }),
    steps: () => [
      ...writes(0, 1),
      refuse(1, NAK_PSN_SEQUENCE, 1),
      ...writes(1),
      request(RC_WRITE_ONLY, 1, { notAfterMs: 4 * AFTER_TIMEOUT.notAfterMs }),
      acknowledge(1, 2),
      silence,
    ],
  },
  {
    name: 'requester/timer',
    rules: [51, 52],
    about: 'A WRITE is not acknowledged. It comes again after the transport timeout, and before four of them.',
    connect: ordered('RDMA_WRITE', 1),
    steps: () => [...writes(0), request(RC_WRITE_ONLY, 0, AFTER_TIMEOUT), acknowledge(0, 1), OVER],
  },
  {
    name: 'requester/timeout-0',
    rules: [53],
    about: 'The timeout is 0. A WRITE that is not acknowledged does not come again.',
    connect: ordered('RDMA_WRITE', 1, { timeout: 0 }),
    steps: () => [...writes(0), silenceFor(500), acknowledge(0, 1), silence],
  },
  {
    name: 'requester/retries',
    rules: [54],
    about: 'With two retries a WRITE comes three times, and then stops.',
    connect: ordered('RDMA_WRITE', 1, { retryCount: 2 }),
    steps: () => [...writes(0), repeated(0), repeated(0), OVER],
  },
  {
    name: 'requester/retries-again',
    rules: [55],
    about:
      'With one retry the first of two WRITEs comes again and is acknowledged. Now the second may also come again.',
    connect: ordered('RDMA_WRITE', 2, { retryCount: 1 }),
    steps: () => [...writes(0, 1), repeated(0), ...writes(1), acknowledge(0, 1), repeated(1), acknowledge(1, 2), OVER],
  },
  {
    name: 'requester/stale-acks',
    rules: [56],
    about: 'An old acknowledgement comes four times in each timeout. The WRITE comes again all the same.',
    connect: ordered('RDMA_WRITE', 1),
    steps: () => [
      ...writes(0),
      ...times(18, staleAck),
      request(RC_WRITE_ONLY, 0, { notAfterMs: AFTER_TIMEOUT.notAfterMs }),
    ],
  },
  {
    name: 'requester/rnr-wait',
    rules: [58],
    about: 'A SEND finds no receive. It comes again when the time of the RNR NAK is over, and not before.',
    connect: ordered('SEND', 1, LONG_TIMEOUT),
    steps: () => [request(RC_SEND_ONLY, 0), noReceive(0), request(RC_SEND_ONLY, 0, AFTER_RNR), acknowledge(0, 1), OVER],
  },
  {
    name: 'requester/rnr-retries',
    rules: [59],
    about: 'With two RNR retries a SEND comes three times, and then stops.',
    connect: ordered('SEND', 1, { ...LONG_TIMEOUT, rnrRetryCount: 2 }),
    steps: () => [
      request(RC_SEND_ONLY, 0),
      ...times(2, () => [noReceive(0), request(RC_SEND_ONLY, 0, AFTER_RNR)]),
      noReceive(0),
      OVER,
    ],
  },
  {
    name: 'requester/rnr-for-ever',
    rules: [59],
    about: 'With RNR retry 7 a SEND comes again more than seven times.',
    connect: ordered('SEND', 1, { ...LONG_TIMEOUT, rnrRetryCount: 7 }),
    steps: () => [
      request(RC_SEND_ONLY, 0),
      ...times(9, () => [noReceive(0), request(RC_SEND_ONLY, 0, AFTER_RNR)]),
      acknowledge(0, 1),
      OVER,
    ],
  },
  {
    name: 'requester/read-rest',
    rules: [63],
    about:
      'Of four READ responses the second is lost. The target asks for the rest, with PSN, address and length moved on.',
    connect: twoReads,
    steps: ({ mtu }) => readRest(mtu, RC_READ_RESPONSE_FIRST),
  },
  {
    name: 'requester/read-rest-middle',
    rules: [64],
    about: 'As before, and the answer to the rest begins with MIDDLE, as that of some responders does.',
    connect: twoReads,
    steps: ({ mtu }) => readRest(mtu, RC_READ_RESPONSE_MIDDLE),
  },
  {
    name: 'requester/read-depth',
    rules: [66],
    about: 'The tester answers two READs at a time. The third comes when the first is answered.',
    connect: () => ({ ...ordered('RDMA_READ', 3, LONG_TIMEOUT)(), responderResources: 2 }),
    steps: () => [
      request(RC_READ_REQUEST, 0),
      request(RC_READ_REQUEST, 1),
      silence,
      response(RC_READ_RESPONSE_ONLY, 0, BYTES),
      request(RC_READ_REQUEST, 2),
      response(RC_READ_RESPONSE_ONLY, 1, BYTES),
      response(RC_READ_RESPONSE_ONLY, 2, BYTES),
      OVER,
    ],
  },
];
