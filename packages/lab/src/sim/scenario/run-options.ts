import { checkKind, checkObject, checkOptions, type OptionNames } from 'rocev2/internal/core';
import { checkFunction } from '../../check-arguments.js';
import type { SimStation } from '../sim-station.js';
import type { ControlSample } from './control-samples.js';

/** An observer of the cable of a host. */
export interface FrameObserver {
  /** Name of the host. */
  readonly host: string;
  /** A frame leaves or arrives at this virtual time. */
  onFrame(timeNs: number, bytes: Uint8Array): void;
}

export interface StationObserver {
  readonly host: string;
  attach(station: SimStation, nowNs: () => number): void;
}

/** Interaction of a run with its caller. */
export interface RunOptions {
  /** Called from time to time with the share of virtual time that has passed; returning false ends the run there. */
  readonly onProgress?: ((done: number) => boolean | Promise<boolean>) | undefined;
  /**
   * Sees every frame on the cable of one host, from the Ethernet header on, without check sequence. The bytes are valid
   * during the call.
   */
  readonly observer?: FrameObserver | undefined;
  /**
   * Called every `sample` of the scenario for each flow in progress, with the rate that its rate control allows. Does
   * not affect the run.
   */
  readonly onControl?: ((sample: ControlSample) => void) | undefined;
  /** Real time in nanoseconds, to report the speed of the run. Default: always 0. */
  readonly realNowNs?: (() => number) | undefined;
}

const NAMES: OptionNames<RunOptions> = { onProgress: true, observer: true, onControl: true, realNowNs: true };

export function checkRunOptions(options: RunOptions): void {
  checkOptions('simulate', options, NAMES);
  const { onProgress, observer, onControl, realNowNs } = options;
  if (onProgress !== undefined) checkFunction('onProgress', onProgress);
  if (onControl !== undefined) checkFunction('onControl', onControl);
  if (realNowNs !== undefined) checkFunction('realNowNs', realNowNs);
  if (observer === undefined) return;
  checkObject('observer', observer, 'an object: host, onFrame');
  checkKind('host of the observer', observer.host, typeof observer.host === 'string', 'text');
  checkFunction('onFrame of the observer', observer.onFrame);
}

export interface WatchedRunOptions extends RunOptions {
  readonly station?: StationObserver;
  readonly onConnections?: (count: number, nowNs: number) => void;
}
