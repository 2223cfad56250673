/**
 * Complex numbers for the frequency domain: only what open-loop transfer functions need. Values are immutable; this is analysis
 * code, a few thousand operations a call, so it may allocate.
 */

/** A complex number. */
export interface Complex {
  /** Real part. */
  readonly re: number;
  /** Imaginary part. */
  readonly im: number;
}

/** `re + i im`. */
export function complex(re: number, im = 0): Complex {
  return { re, im };
}

/** `x + y`. */
export function add(x: Complex, y: Complex): Complex {
  return { re: x.re + y.re, im: x.im + y.im };
}

/** `x - y`. */
export function subtract(x: Complex, y: Complex): Complex {
  return { re: x.re - y.re, im: x.im - y.im };
}

/** `x y`. */
export function multiply(x: Complex, y: Complex): Complex {
  return { re: x.re * y.re - x.im * y.im, im: x.re * y.im + x.im * y.re };
}

/** `x / y`; not finite where `y` is 0. */
export function divide(x: Complex, y: Complex): Complex {
  const norm = y.re * y.re + y.im * y.im;
  return { re: (x.re * y.re + x.im * y.im) / norm, im: (x.im * y.re - x.re * y.im) / norm };
}

/** A complex number times a real one. */
export function scale(x: Complex, factor: number): Complex {
  return { re: x.re * factor, im: x.im * factor };
}

/** The product of all factors. */
export function product(...factors: readonly Complex[]): Complex {
  return factors.reduce(multiply);
}

/** The sum of all terms. */
export function sum(...terms: readonly Complex[]): Complex {
  return terms.reduce(add);
}

/** e^(i angle): what a pure delay does to a sine wave. `angle` in radians. */
export function unitPhasor(angle: number): Complex {
  return { re: Math.cos(angle), im: Math.sin(angle) };
}

/** `|x|`. */
export function magnitude(x: Complex): number {
  return Math.hypot(x.re, x.im);
}

/** The principal argument in radians, (-pi, pi]. */
export function argument(x: Complex): number {
  return Math.atan2(x.im, x.re);
}

/** A 3x3 matrix: three rows of three numbers. */
export type Complex3x3 = readonly (readonly [Complex, Complex, Complex])[];

/** The determinant of a 3 x 3 matrix given by rows. */
export function determinant3([r0, r1, r2]: Complex3x3): Complex {
  const minor = (i: 0 | 1 | 2, j: 0 | 1 | 2): Complex => subtract(multiply(r1[i], r2[j]), multiply(r1[j], r2[i]));
  return sum(multiply(r0[0], minor(1, 2)), scale(multiply(r0[1], minor(0, 2)), -1), multiply(r0[2], minor(0, 1)));
}
