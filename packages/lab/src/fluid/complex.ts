/**
 * Complex numbers for the frequency domain: only what open-loop transfer functions need. Values are immutable; this is
 * analysis code, a few thousand operations a call, so it may allocate.
 */

/** A complex number. */
export interface Complex {
  /** Real part. */
  readonly re: number;
  /** Imaginary part. */
  readonly im: number;
}

export function complex(re: number, im = 0): Complex {
  return { re, im };
}

export function add(x: Complex, y: Complex): Complex {
  return { re: x.re + y.re, im: x.im + y.im };
}

export function subtract(x: Complex, y: Complex): Complex {
  return { re: x.re - y.re, im: x.im - y.im };
}

export function multiply(x: Complex, y: Complex): Complex {
  return { re: x.re * y.re - x.im * y.im, im: x.re * y.im + x.im * y.re };
}

export function divide(x: Complex, y: Complex): Complex {
  const norm = y.re * y.re + y.im * y.im;
  return { re: (x.re * y.re + x.im * y.im) / norm, im: (x.im * y.re - x.re * y.im) / norm };
}

export function scale(x: Complex, factor: number): Complex {
  return { re: x.re * factor, im: x.im * factor };
}

export function product(...factors: readonly Complex[]): Complex {
  return factors.reduce(multiply);
}

export function sum(...terms: readonly Complex[]): Complex {
  return terms.reduce(add);
}

export function unitPhasor(angle: number): Complex {
  return { re: Math.cos(angle), im: Math.sin(angle) };
}

export function magnitude(x: Complex): number {
  return Math.hypot(x.re, x.im);
}

export function argument(x: Complex): number {
  return Math.atan2(x.im, x.re);
}

export type Complex3x3 = readonly (readonly [Complex, Complex, Complex])[];

export function determinant3([r0, r1, r2]: Complex3x3): Complex {
  const minor = (i: 0 | 1 | 2, j: 0 | 1 | 2): Complex => subtract(multiply(r1[i], r2[j]), multiply(r1[j], r2[i]));
  return sum(multiply(r0[0], minor(1, 2)), scale(multiply(r0[1], minor(0, 2)), -1), multiply(r0[2], minor(0, 1)));
}
