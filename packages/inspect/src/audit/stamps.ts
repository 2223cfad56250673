const TIMEOUT_UNIT_NS = 4096;
/** A driver stamps packets a little after it reads its clock. */
const STAMP_TOLERANCE_NS = 100_000;
const STAMP_TOLERANCE = 0.05;

/** The transport timeout of a code, 1 to 31 (C9-140). */
export function timeoutOfCode(code: number): number {
  return TIMEOUT_UNIT_NS * 2 ** code;
}

export function leastNs(ns: number): number {
  return ns * (1 - STAMP_TOLERANCE) - STAMP_TOLERANCE_NS;
}

export function mostNs(ns: number): number {
  return ns * (1 + STAMP_TOLERANCE) + STAMP_TOLERANCE_NS;
}
