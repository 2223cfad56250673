/**
 * A scene shows one idea. A simulated scene has controls, the runs that they define, and a sentence that explains the
 * result. A file scene reads a file of the user, and has a view for what it finds.
 */

import type { Scenario, ScenarioResult, ScenarioRun } from '@rocev2/lab/internal/page';
import type { CaptureReport } from './capture-report.js';
import type { TextKey } from './texts.js';

type Summary = ScenarioResult['summary'];

/** A control. Its label and hint are the texts `SCENE.NAME` and `SCENE.NAME.hint`. */
export interface Parameter {
  readonly name: string;
  readonly kind: 'slider' | 'choice' | 'set' | 'code';
  /** As the URL has them and the page shows them. */
  readonly values: readonly string[];
  /** One of the values; of a set some of them, separated by commas; of code empty. */
  readonly initial: string;
  /** Of code: what runs while its value is empty. */
  readonly example?: (values: Values) => string;
}

/** Code of the user that registers a scheme. */
export interface OwnScheme {
  readonly kind: 'rate control' | 'recovery scheme';
  readonly code: string;
}

/** At most this useful, a result does not have the colour of success. */
export const FAIR_SHARE_MAX = 0.7;

/** A link can hold this much code, in characters. */
export const CODE_MAX = 4000;

/** By the name of the parameter; of a set its values, separated by commas. */
export type Values = Readonly<Record<string, string>>;

/** One of the simulations that a scene compares: of a scenario. */
export interface ScenarioVariant {
  readonly name: string;
  readonly scenario: Scenario;
  /** Is loaded before the run, and replaces the scheme of the scenario. */
  readonly own?: OwnScheme;
  /** What is sampled 200 times: reads the numbers of the scene's series since the last call. */
  watch(run: ScenarioRun): () => readonly number[];
  /** The bars, one number of each series. Default: the means of the samples. */
  readonly means?: (result: ScenarioResult, sampled: readonly number[]) => readonly number[];
}

/** As `rocev2 window --policy` names them. */
export const WINDOW_POLICIES = ['baseline', 'nodelay', 'nagle'] as const;

/** A sender that writes blocks into the memory of a receiver. */
export interface WindowProgram {
  readonly policy: (typeof WINDOW_POLICIES)[number];
  /** In the pool. */
  readonly blocks: number;
  readonly blockBytes: number;
  /** Of each link. */
  readonly delayNs: number;
  readonly seed: number;
}

/** One of the simulations that a scene compares: of a program. The bars are the last samples. */
export interface ProgramVariant {
  readonly name: string;
  readonly durationNs: number;
  readonly program: WindowProgram;
}

export type Variant = ScenarioVariant | ProgramVariant;

export function durationNsOf(variant: Variant): number {
  return 'program' in variant ? variant.durationNs : variant.scenario.duration;
}

export interface PlottedSeries {
  readonly label: TextKey;
  readonly unit: 'rate' | 'bytes' | 'time' | 'share' | 'count';
  /** A style property of the colour. */
  readonly color: string;
  /** The largest value of its bars, instead of that of the scene, and of its chart. */
  readonly max?: number;
}

/** What explanations use of a result. */
export interface RunResult {
  readonly traceHash: string;
  readonly summary: Pick<Summary, 'goodputBps' | 'jain' | 'cnps' | 'droppedPackets' | 'pauseFrames'>;
}

/** A result of a variant. */
export interface Outcome {
  readonly name: string;
  readonly result: RunResult;
  /** One number of each series. */
  readonly means: readonly number[];
}

export interface Explanation {
  /** 0..1: the share of the traffic that is useful, which gives the colour. */
  readonly usefulShare: number;
  readonly title: TextKey;
  readonly text: TextKey;
  /** For `{name}` in the text. */
  readonly numbers: Readonly<Record<string, string>>;
}

/** Curves of the theory over a parameter, such as the phase margin over the flows. */
export interface Curve {
  readonly label: TextKey;
  readonly xLabel: TextKey;
  readonly formatX?: (x: number) => string;
  readonly formatY: (y: number) => string;
  readonly x: readonly number[];
  /** `name`: a text or the name of a run. null where there is no value. */
  readonly lines: ReadonlyArray<{ readonly name: string; readonly y: ReadonlyArray<number | null> }>;
  /** The chosen value of x. */
  readonly at?: number;
  /** Results next to the lines, by the place of their line. */
  points?(
    outcomes: readonly Outcome[],
  ): ReadonlyArray<{ readonly line: number; readonly x: number; readonly y: number }>;
}

interface SceneHead {
  /** In the URL. */
  readonly name: string;
  readonly parameters: readonly Parameter[];
}

export interface SimulatedScene extends SceneHead {
  readonly kind: 'simulated';
  readonly series: readonly PlottedSeries[];
  /** The largest value of the bars. */
  readonly barMax: number;
  variants(values: Values, seed: number): readonly Variant[];
  /** Is computed once for the values. */
  readonly curve?: (values: Values) => Curve | undefined;
  explain(values: Values, outcomes: readonly Outcome[]): Explanation;
}

export interface FileScene extends SceneHead {
  readonly kind: 'file';
  /** Ends of the names of files, for the choice of a file. */
  readonly accepts: readonly string[];
  explain(report: CaptureReport): Explanation;
}

export type Scene = SimulatedScene | FileScene;

/** The values of a document: those given, where they are possible, and the initial ones. */
export function completed(scene: SceneHead, given: Values): Values {
  return Object.fromEntries(
    scene.parameters.map(({ name, kind, values, initial }) => {
      if (kind === 'code') return [name, (given[name] ?? '').length > CODE_MAX ? initial : (given[name] ?? initial)];
      const value = given[name] ?? '';
      const possible = kind === 'set' ? chosenOf(values, value) : values.filter((one) => one === value);
      return [name, possible.length === 0 ? initial : possible.join(',')];
    }),
  );
}

/** The members of `all` that the value of a set names, in the order of `all`. */
export function chosenOf<T extends string>(all: readonly T[], value: string): T[] {
  const chosen = value.split(',');
  return all.filter((one) => chosen.includes(one));
}
