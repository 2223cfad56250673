import { RoceError } from 'rocev2/internal/core';
import type { EstatsSnapshot } from 'rocev2/internal/estats';
import { askSnapshot, findPrograms, type ProgramTarget } from './program-client.js';
import { isMeant, type WatchedDocument } from './watched.js';

/** The program that a part of a document describes. */
export interface EndpointName {
  /** Process number. */
  readonly pid: number;
  /** IP address of the endpoint. */
  readonly address: string;
}

/** The fields of `estats top|hist|dump|diagnose --json`. */
export interface Endpoints<T> {
  /** One entry for each endpoint that answered. */
  readonly endpoints: readonly T[];
}

export interface EndpointOptions {
  readonly endpoint?: string;
  readonly minutes: number;
  readonly json?: true;
}

export interface EndpointReading {
  readonly target: ProgramTarget;
  readonly snapshot: EstatsSnapshot;
}

export async function attach(wanted: string | undefined, minutes: number): Promise<EndpointReading[]> {
  if (wanted !== undefined && /^https?:/.test(wanted)) return [await at({ url: wanted }, minutes)];
  if (wanted?.includes('/')) return [await at({ socketPath: wanted }, minutes)];
  const running = await findPrograms(minutes);
  const meant = running.filter(({ document }) => wanted === undefined || isMeant(wanted, document));
  const endpoints = meant.flatMap(({ socketPath, document }) =>
    document.kind === 'endpoint' ? [{ target: { socketPath }, snapshot: document }] : [],
  );
  if (endpoints.length > 0) return endpoints;
  throw nothingThere(
    wanted,
    running.map(({ document }) => document),
  );
}

function nothingThere(wanted: string | undefined, running: readonly WatchedDocument[]): RoceError {
  const there = running.map(({ kind, pid, address }) => `${kind} ${pid} on ${address}`).join(', ');
  const isOther = running.some(({ kind }) => kind !== 'endpoint') ? "; 'rocev2 dashboard --attach' shows all" : '';
  return new RoceError(
    'ERR_ROCE_CONNECT',
    wanted === undefined ? 'no endpoint with telemetry is running' : `no endpoint '${wanted}' is running`,
    there === ''
      ? "start one with --estats, e.g. 'rocev2 bw write --estats', or openDevice({estats: true})"
      : `there is ${there}${isOther}`,
  );
}

async function at(target: ProgramTarget, minutes: number): Promise<EndpointReading> {
  return { target, snapshot: await askSnapshot(target, minutes) };
}

export function endpointName({ pid, address }: EstatsSnapshot): string {
  return `${pid} on ${address}`;
}
