import { describe, expect, it } from 'vitest';
import { complex, divide, multiply, scale, unitPhasor } from '../../src/fluid/complex.js';
import { criticalDelayNs, type OpenLoop, phaseMargin } from '../../src/fluid/phase-margin.js';

/** L(s) = gain e^(-s delay) / s: crossover at `gain`, margin 90 degrees less gain * delay. */
function delayedIntegrator(gain: number, delaySeconds: number): OpenLoop {
  return {
    delaySeconds,
    response: (omega) => multiply(divide(complex(gain), complex(0, omega)), unitPhasor(-omega * delaySeconds)),
  };
}

describe('phaseMargin', () => {
  it.each([0, 1e-5, 1e-4, 1e-3, 1e-2])('of a delayed integrator is exact, %d s of delay', (delay) => {
    const found = phaseMargin(delayedIntegrator(1000, delay))!;
    expect(found.crossoverRadPerSecond).toBeCloseTo(1000, 6);
    expect(found.degrees).toBeCloseTo(90 - (1000 * delay * 180) / Math.PI, 6);
  });

  it('of a double integrator is zero, whichever side of the cut the argument falls on', () => {
    const loop = (sign: number): OpenLoop => ({
      delaySeconds: 0,
      response: (omega) => scale(divide(complex(1e6, sign * 1e-9), complex(omega * omega)), -1),
    });
    expect(phaseMargin(loop(1))!.degrees).toBeCloseTo(0, 6);
    expect(phaseMargin(loop(-1))!.degrees).toBeCloseTo(0, 6);
  });

  it('is null where the gain never crosses one', () => {
    expect(phaseMargin({ delaySeconds: 0, response: () => complex(0.5) })).toBeNull();
  });
});

describe('criticalDelayNs', () => {
  it('of an integrator is pi/2 over its gain', () => {
    expect(criticalDelayNs((delay) => delayedIntegrator(1e4, delay))! / 1e3).toBeCloseTo((Math.PI / 2) * 100, 2);
  });

  it('is 0 for a loop that is unstable without delay and null for one that stays stable', () => {
    expect(criticalDelayNs((delay) => delayedIntegrator(-1e4, delay))).toBe(0);
    expect(criticalDelayNs((delay) => delayedIntegrator(100, delay))).toBeNull();
  });
});
