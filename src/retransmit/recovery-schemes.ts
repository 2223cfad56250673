/** The recovery schemes: one registry, from which names, options and parameters everywhere follow. */

import type { Optional } from '../core/defaults.js';
import type { ParametersOf, ParameterTable } from '../core/parameters.js';
import { type PackedScheme, SchemeRegistry } from '../core/scheme-registry.js';
import { threadLocalSingleton } from '../core/thread-local-singleton.js';
import { dcp } from './dcp.js';
import { goBack0 } from './go-back-0.js';
import { goBackN } from './go-back-n.js';
import { irn } from './irn.js';
import { melo } from './melo.js';
import { multipath } from './multipath.js';
import { NicContext } from './nic-context.js';
import { rack } from './rack.js';
import type { ReceiverRecovery, RecoveryDefinition, RegisteredRecoveries, SenderRecovery } from './recovery.js';
import { selectiveRepeat } from './selective-repeat.js';

const BUILT_IN = [goBackN, goBack0, selectiveRepeat, irn, rack, multipath, melo, dcp] as const;

type BuiltInTables = { [D in (typeof BUILT_IN)[number] as D['name']]: D['parameters'] };
type Tables = BuiltInTables & RegisteredRecoveries;

/**
 * How losses are repaired: by the standard's go-back-N, or, where both ends agree, by one of the others. Registered
 * ones count when {@link RegisteredRecoveries} names them.
 */
export type RecoveryName = keyof Tables & string;

/**
 * A scheme and those of its parameters that differ from the defaults: a name alone, or
 * `{name: 'my-scheme', windowPackets: 64}`.
 */
export type RecoveryOptions =
  | RecoveryName
  | {
      [N in RecoveryName]: {
        /** Name of the scheme; its parameters are further fields. */
        readonly name: N;
      } & Optional<ParametersOf<Tables[N]>>;
    }[RecoveryName];

/** A scheme with all its parameters. */
export type RecoverySettings = {
  [N in RecoveryName]: {
    /** Name of the scheme; its parameters are further fields. */
    readonly name: N;
  } & ParametersOf<Tables[N]>;
}[RecoveryName];

export const STANDARD_RECOVERY = goBackN.name;

export const recoverySchemes = threadLocalSingleton(
  'recovery schemes',
  () => new SchemeRegistry<RecoveryDefinition>('recovery scheme', ['sender', 'receiver'], BUILT_IN),
);

/**
 * Adds a recovery scheme, so that options can name it. A worker engine and other processes have separate registries:
 * they load the module that registers it (`openDevice({extensions})`, `--extension`). Throws ERR_ROCE_INVALID_ARGUMENT
 * for a name that is taken or malformed, a bad table of parameters, and a definition without `sender` or `receiver`.
 */
export function registerRecovery<const N extends string, const T extends ParameterTable>(
  definition: RecoveryDefinition<N, T>,
): void {
  recoverySchemes.register(definition);
}

/** The names of all recovery schemes: those of the package, then registered ones. */
export function recoveryNames(): readonly RecoveryName[] {
  return recoverySchemes.names as readonly RecoveryName[];
}

/**
 * The options completed with defaults. Throws ERR_ROCE_UNKNOWN_NAME for an unknown scheme or parameter,
 * ERR_ROCE_OUT_OF_RANGE for a value.
 */
export function recoverySettings(options: RecoveryOptions): RecoverySettings {
  return recoverySchemes.complete(options) as RecoverySettings;
}

export function packRecovery(options: RecoveryOptions): PackedScheme {
  return recoverySchemes.pack(options);
}

export function unpackRecovery(name: string, block: Float64Array): RecoverySettings {
  return recoverySchemes.unpack(name, block) as RecoverySettings;
}

export function createSender({ name, ...parameters }: RecoverySettings): SenderRecovery {
  return recoverySchemes.get(name).sender(parameters);
}

/**
 * The receiver's half for one queue pair of `nic`; by default a NIC with no other queue pair. Throws like
 * {@link createSender}.
 */
export function createReceiver(
  { name, ...parameters }: RecoverySettings,
  nic: NicContext = new NicContext(),
): ReceiverRecovery {
  return recoverySchemes.get(name).receiver(parameters, nic);
}

/** Traits for comparing schemes: how the sender's half, with default parameters, reacts to a loss. */
export function senderTraits(
  name: RecoveryName,
): Pick<SenderRecovery, 'goesBack' | 'restartsMessages' | 'infersLosses' | 'usesTime' | 'wantsEcho'> {
  return createSender(recoverySettings(name));
}

/** True when the scheme reports gaps by SACK. Throws ERR_ROCE_UNKNOWN_NAME. */
export function usesSack(name: string): boolean {
  return recoverySchemes.get(name).usesSack === true;
}

/** UDP source ports of one end of a connection. Throws ERR_ROCE_UNKNOWN_NAME. */
export function entropiesOf({ name, ...parameters }: RecoverySettings): number {
  return recoverySchemes.get(name).entropies?.(parameters) ?? 1;
}

/** The parameters that must be the same at both ends of a connection, with their values. */
export function agreedParameters(settings: RecoverySettings): Readonly<Record<string, number>> {
  const { name, ...values } = settings as { readonly name: string } & Record<string, number>;
  const table = recoverySchemes.get(name).parameters;
  return Object.fromEntries(Object.entries(values).filter(([key]) => table[key].agreed === true));
}

/** All recovery schemes, ordered from most to fewest retransmissions after a loss. */
export function recoveryNamesByWaste(): readonly RecoveryName[] {
  const waste = (name: RecoveryName) => {
    const { goesBack, restartsMessages } = senderTraits(name);
    return Number(goesBack) + Number(restartsMessages);
  };
  return [...recoveryNames()].sort((one, other) => waste(other) - waste(one));
}
