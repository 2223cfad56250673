import { CNP } from 'rocev2/internal/packet';
import { ack, type Step, send, silence, type TestCase, testCase } from '../step.js';
import { ping } from './request-packets.js';

/** The highest number that is not the one of multicast: unlikely to be in use. */
const UNKNOWN_QPN = 0xfffffe;
const CNPS = 16;

/** A CNP as of annex A17.9.3: PSN 0, BECN and no other flag. */
function notification(destQpn: number): Step {
  const psnOfZero = [9, 10, 11].map((offset) => [offset, 0] as const);
  return send(CNP, 0, { ackReq: false, fields: { destQpn, migReq: false, becn: true }, forge: psnOfZero });
}

export const CONGESTION_CASES: readonly TestCase[] = [
  testCase('cnp/unknown', [90], `${CNPS} CNPs go to a queue pair that nobody has. They are ignored.`, () => [
    ping(0),
    ack(0, 1),
    ...Array.from({ length: CNPS }, () => notification(UNKNOWN_QPN)),
    silence,
    ping(1),
    ack(1, 2),
  ]),
];
