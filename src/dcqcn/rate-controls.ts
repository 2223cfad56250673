/** The rate controls: one registry, from which names, options and parameters everywhere follow. */

import type { Optional } from '../core/defaults.js';
import { RoceError } from '../core/errors.js';
import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { type PackedScheme, SchemeRegistry } from '../core/scheme-registry.js';
import { threadLocalSingleton } from '../core/thread-local-singleton.js';
import { INT_NONE } from '../packet/int-trailer.js';
import { fixed, none } from './constant-rate.js';
import { dctcp } from './dctcp.js';
import { hpcc } from './hpcc.js';
import { nscc } from './nscc.js';
import { patchedTimely } from './patched-timely.js';
import { SINCE_LAST } from './phase.js';
import { hpccPint } from './pint.js';
import { powertcp } from './powertcp.js';
import type { RateControl, RateControlDefinition, RegisteredRateControls } from './rate-control.js';
import { rccc } from './rccc.js';
import { dcqcn } from './reaction-point.js';
import { swift } from './swift.js';
import { thetaPowertcp } from './theta-powertcp.js';
import { timely } from './timely.js';

const BUILT_IN = [
  none,
  fixed,
  dcqcn,
  timely,
  patchedTimely,
  dctcp,
  swift,
  hpcc,
  hpccPint,
  powertcp,
  thetaPowertcp,
  nscc,
  rccc,
] as const;

/** Parameters of the receiver, which all queue pairs have, also those without a rate limit. */
const RECEIVER_TABLE = {
  /** N: at most one congestion notification in this time (min_time_between_cnps). 0: one for each marked packet. */
  cnpIntervalNs: { default: 50_000, ...LIMITS.timeOrZeroNs },
  /**
   * 0: N counts from the last notification. 1: notifications are sent at the ticks of a timer of period N (ns3-rdma).
   */
  cnpPhase: { default: SINCE_LAST, ...LIMITS.flag },
} as const satisfies ParameterTable;

/** How packets are spread in time, for schemes with a rate. */
const PACED_TABLE = {
  /** Bytes sent back to back before the pause that brings the flow to its rate. 0: packet by packet. */
  burstBytes: { default: 0, ...LIMITS.bytesOrZero },
  ...RECEIVER_TABLE,
} as const satisfies ParameterTable;

type AddedTable<D> = D extends { readonly isPaced?: false } ? typeof RECEIVER_TABLE : typeof PACED_TABLE;
type BuiltInTables = {
  [D in (typeof BUILT_IN)[number] as D['name']]: D['parameters'] & AddedTable<D>;
};
type RegisteredTables = { [N in keyof RegisteredRateControls]: RegisteredRateControls[N] & typeof PACED_TABLE };
type Tables = BuiltInTables & RegisteredTables;

/**
 * Name of a rate control; docs/congestion-control.md describes them. Registered ones count when
 * {@link RegisteredRateControls} names them.
 */
export type RateControlName = keyof Tables & string;

/** A scheme and those of its parameters that differ from the defaults: `{name: 'dcqcn', linkRateBps: 10e9}`. */
export type RateControlOptions = {
  [N in RateControlName]: {
    /** Name of the scheme; its parameters are further fields. */
    readonly name: N;
  } & Optional<ParametersOf<Tables[N]>>;
}[RateControlName];

/** A scheme with all its parameters. */
export type RateControlSettings = {
  [N in RateControlName]: {
    /** Name of the scheme; its parameters are further fields. */
    readonly name: N;
  } & ParametersOf<Tables[N]>;
}[RateControlName];

/** The definition with the parameters of the queue pair itself after the scheme's own. */
function withAddedParameters(definition: RateControlDefinition): RateControlDefinition {
  const { name, summary, parameters, isPaced = true } = definition;
  const added = isPaced ? PACED_TABLE : RECEIVER_TABLE;
  return { name, summary, isPaced, parameters: { ...parameters, ...added }, create: (p) => definition.create(p) };
}

export const rateControls = threadLocalSingleton(
  'rate controls',
  () => new SchemeRegistry<RateControlDefinition>('rate control', ['create'], BUILT_IN.map(withAddedParameters)),
);

/**
 * Adds a rate control, so that options can name it. A worker engine and other processes have separate registries: they
 * load the module that registers it (`openDevice({extensions})`, `--extension`). Throws ERR_ROCE_INVALID_ARGUMENT for a
 * name that is taken or malformed, a bad table of parameters, and a definition without `create`.
 */
export function registerRateControl<const N extends string, const T extends ParameterTable>(
  definition: RateControlDefinition<N, T>,
): void {
  rateControls.check(definition, Object.keys(PACED_TABLE));
  rateControls.register(withAddedParameters(definition));
}

/** The names of all rate controls: those of the package, then registered ones. */
export function rateControlNames(): readonly RateControlName[] {
  return rateControls.names as readonly RateControlName[];
}

/**
 * The options completed with defaults. Throws ERR_ROCE_UNKNOWN_NAME for an unknown scheme or parameter,
 * ERR_ROCE_OUT_OF_RANGE for a value.
 */
export function rateControlSettings(options: RateControlOptions): RateControlSettings {
  return rateControls.complete(options) as RateControlSettings;
}

export function packRateControl(options: RateControlOptions): PackedScheme {
  return rateControls.pack(options);
}

export function unpackRateControl(name: string, block: Float64Array): RateControlSettings {
  return rateControls.unpack(name, block) as RateControlSettings;
}

/** The control of one flow. Throws ERR_ROCE_CONFLICT for parameters that contradict each other. */
export function createRateControl(settings: RateControlSettings): RateControl {
  const { name, ...parameters } = rateControls.complete(settings);
  return rateControls.get(name).create(parameters as ParametersOf<ParameterTable>);
}

/**
 * Rejects a rate control that needs echoes of in-band telemetry: a peer that has not announced them would drop every
 * data packet.
 */
export function refuseEchoes(options: RateControlOptions): void {
  if (!needsEcho(options)) return;
  throw new RoceError(
    'ERR_ROCE_CONFLICT',
    `rate control ${options.name} needs a peer that echoes in-band telemetry, and this kind of connection cannot ask for it`,
    'connect by the exchange of this package, or take a rate control by round trips or notifications: timely, swift, theta-powertcp, dcqcn',
  );
}

export function needsEcho(options: RateControlOptions): boolean {
  return createRateControl(rateControlSettings(options)).intKind !== INT_NONE;
}

/** True if packets are paced, in bursts of `burstBytes`; false if they leave as soon as possible. */
export function hasPacing(
  settings: RateControlSettings,
): settings is RateControlSettings & { readonly burstBytes: number } {
  return rateControls.get(settings.name).isPaced === true;
}
