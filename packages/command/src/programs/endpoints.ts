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

/** Options of all `estats` commands. */
export interface EndpointOptions {
  /** Process number, IP address, socket or URL; default all. */
  readonly endpoint?: string;
  /** How far back to look. */
  readonly minutes: number;
  /** Print one JSON document. */
  readonly json?: true;
}

/** An endpoint that answered. */
export interface EndpointReading {
  /** Where it answers. */
  readonly target: ProgramTarget;
  /** What it said. */
  readonly snapshot: EstatsSnapshot;
}

/**
 * All running endpoints; with `wanted` (process number, IP address, path of a control socket, or URL) that one. Throws
 * ERR_ROCE_CONNECT when there is none.
 */
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

/** `12345 on 127.0.0.2`. */
export function endpointName({ pid, address }: EstatsSnapshot): string {
  return `${pid} on ${address}`;
}
