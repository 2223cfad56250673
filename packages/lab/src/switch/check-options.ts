/** Checks what programs without types pass: each setting has its kind, and a misspelt one is refused. */

import { checkKind, checkOneOf, checkOptions, checkWhole, type OptionNames } from 'rocev2/internal/core';
import type {
  BufferConfig,
  ClassificationConfig,
  IntConfig,
  PfcConfig,
  PiConfig,
  RedConfig,
  RouteConfig,
  SchedulingConfig,
  SwitchConfig,
  SwitchPortConfig,
  TrimConfig,
  WatchdogConfig,
} from './switch-config.js';

type Check = (name: string, value: unknown) => void;

const U32_MAX = 2 ** 32 - 1;

const amount: Check = (name, value) =>
  checkKind(name, value, typeof value === 'number' && value >= 0, 'a number of at least 0');
const isBoolean: Check = (name, value) => checkKind(name, value, typeof value === 'boolean', 'true or false');
const isText: Check = (name, value) => checkKind(name, value, typeof value === 'string', 'text');
const isFunction: Check = (name, value) => checkKind(name, value, typeof value === 'function', 'a function');
const isObject: Check = (name, value) =>
  checkKind(name, value, typeof value === 'object' && value !== null, 'an object');
const whole =
  (min: number, max: number): Check =>
  (name, value) =>
    void checkWhole(name, value, min, max);
const oneOf =
  (...all: readonly string[]): Check =>
  (name, value) =>
    void checkOneOf(name, value, all);

function listOf(check: Check): Check {
  return (name, value) => {
    checkKind(name, value, Array.isArray(value), 'a list');
    for (const [i, entry] of (value as unknown[]).entries()) check(`${name}[${i}]`, entry);
  };
}

function recordOf(check: Check): Check {
  return (name, value) => {
    checkKind(name, value, typeof value === 'object' && value !== null && !Array.isArray(value), 'an object');
    for (const [key, entry] of Object.entries(value as object)) check(`${name}.${key}`, entry);
  };
}

/** An object with these members, each of which may be undefined. */
function shape<T extends object>(checks: { readonly [K in keyof T]-?: Check }): Check {
  const known = Object.fromEntries(Object.keys(checks).map((key) => [key, true])) as unknown as OptionNames<T>;
  return (name, value) => {
    checkOptions(name, value as T, known);
    for (const [key, check] of Object.entries<Check>(checks)) {
      const member = (value as Record<string, unknown>)[key];
      if (member !== undefined) check(`${name}.${key}`, member);
    }
  };
}

/** The parts of the switch check which priorities and weights can be. */
const priority: Check = (name, value) => checkKind(name, value, typeof value === 'number', 'a number');
const site = { at: oneOf('dequeue', 'enqueue'), priorities: listOf(priority), dropNotEct: isBoolean };
const red = shape<RedConfig>({ kind: oneOf('red'), kminBytes: amount, kmaxBytes: amount, pmax: amount, ...site });
const pi = shape<PiConfig>({
  kind: oneOf('pi'),
  referenceBytes: amount,
  proportionalPerByte: amount,
  integralPerByteSecond: amount,
  ...site,
});
const marking: Check = (name, value) => {
  isObject(name, value);
  const { kind } = value as { readonly kind?: unknown };
  oneOf('red', 'pi')(`${name}.kind`, kind);
  (kind === 'red' ? red : pi)(name, value);
};

const port = shape<SwitchPortConfig>({
  rateBps: amount,
  cableMetres: amount,
  headroomBytes: amount,
  ecn: (name, value) => {
    if (value !== null) marking(name, value);
  },
});

const CONFIG: { readonly [K in keyof SwitchConfig]-?: Check } = {
  queuePackets: whole(0, U32_MAX),
  bufferPackets: whole(1, U32_MAX),
  macTableEntries: whole(0, U32_MAX),
  macAgeNs: amount,
  frameBytesMax: whole(64, 65_535),
  classification: shape<ClassificationConfig>({ trust: oneOf('dscp', 'pcp'), dscpToPriority: recordOf(priority) }),
  scheduling: shape<SchedulingConfig>({ strict: listOf(priority), weights: listOf(priority) }),
  buffer: shape<BufferConfig>({
    totalBytes: amount,
    headroomPoolBytes: amount,
    headroomOversubscription: amount,
    ingressPoolBytes: amount,
    egressLossyPoolBytes: amount,
    losslessAlpha: amount,
    lossyAlpha: amount,
    reservedBytes: amount,
    xonOffsetBytes: amount,
  }),
  pfc: shape<PfcConfig>({
    priorities: listOf(priority),
    quanta: whole(1, 65_535),
    watchdog: shape<WatchdogConfig>({
      detectNs: amount,
      restoreNs: amount,
      pollNs: amount,
      action: oneOf('drop', 'forward', 'alert'),
    }),
  }),
  ecn: marking,
  int: shape<IntConfig>({ isOn: isBoolean, baseRttNs: amount }),
  trim: shape<TrimConfig>({ priority }),
  routes: listOf(shape<RouteConfig>({ to: isText, ports: listOf(isText) })),
  flood: isBoolean,
  hashSeed: whole(0, U32_MAX),
  portDefaults: port,
  portConfig: recordOf(port),
};

/** Throws ERR_ROCE_INVALID_ARGUMENT, ERR_ROCE_OUT_OF_RANGE or ERR_ROCE_UNKNOWN_NAME for the first wrong setting. */
export const checkSwitchConfig: Check = shape<SwitchConfig>(CONFIG);

/** {@link checkSwitchConfig} for a switch by itself, which has ports as well. */
export const checkSwitchOptions: Check = shape<
  SwitchConfig & Record<'ports' | 'faults' | 'onFault' | 'random' | 'pool', unknown>
>({
  ...CONFIG,
  ports: listOf(isText),
  faults: isObject,
  onFault: isFunction,
  random: isObject,
  pool: isObject,
});
