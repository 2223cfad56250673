import { readInputFile, readJsonFile } from '@rocev2/command';
import { nearestName, RoceError } from 'rocev2/internal/core';
import { type Ns3FlowFormat, parseNs3Flows, parseNs3Topology } from '../../sim/formats/ns3.js';
import { like, type Original } from '../../sim/scenario/like.js';
import { controlParameters, override } from '../../sim/scenario/overrides.js';
import { parseScenario, type Scenario } from '../../sim/scenario/schema.js';
import { BUILT_IN_SCENARIOS } from '../../sim/scenarios/index.js';

export interface ScenarioChoice {
  readonly name: string;
  readonly set: readonly string[];
  readonly topology?: string;
  readonly flows?: string;
  readonly flowFormat?: Ns3FlowFormat;
  readonly like?: Original;
}

export async function loadScenario(choice: ScenarioChoice): Promise<Scenario> {
  return parseScenario(await loadDocument(choice));
}

export async function loadDocument(choice: ScenarioChoice): Promise<unknown> {
  const { set, like: original } = choice;
  const loaded = await loadFile(choice);
  // What is not an object is refused where it is parsed.
  if (!isRecord(loaded)) return loaded;
  const file = override(loaded, set);
  return original === undefined ? file : override(like(file, original), controlParameters(set));
}

function isRecord(file: unknown): file is Record<string, unknown> {
  return typeof file === 'object' && file !== null && !Array.isArray(file);
}

async function loadFile({ name, topology, flows, flowFormat }: ScenarioChoice): Promise<unknown> {
  const file = BUILT_IN_SCENARIOS.find((scenario) => scenario.name === name) ?? (await readScenario(name));
  const foreign = {
    ...(topology !== undefined && { topology: await readTopology(topology) }),
    ...(flows !== undefined && { flows: [{ kind: 'list', flows: await readFlows(flows, flowFormat ?? 'hpcc') }] }),
  };
  return isRecord(file) ? { ...file, ...foreign } : file;
}

async function readTopology(path: string) {
  const { hosts, switches, links } = parseNs3Topology(await readText(path));
  return {
    kind: 'links',
    hosts,
    switches,
    links: links.map(({ a, b, rateBps, delayNs }) => ({ a, b, rate: rateBps, delay: delayNs })),
  };
}

async function readFlows(path: string, format: Ns3FlowFormat) {
  return parseNs3Flows(await readText(path), format);
}

async function readText(path: string): Promise<string> {
  return (await readInputFile(path)).toString('utf8');
}

async function readScenario(path: string): Promise<unknown> {
  if (path.includes('.') || path.includes('/')) return await readJsonFile(path);
  return await readJsonFile(path).catch((cause: Error) => {
    if (!(cause instanceof RoceError) || cause.code !== 'ERR_ROCE_IO') throw cause;
    const meant = nearestName(
      path,
      BUILT_IN_SCENARIOS.map(({ name }) => name),
    );
    const hint = meant === undefined ? "'rocev2 sim list' shows all" : `did you mean '${meant}'?`;
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `there is no scenario '${path}'`, hint, { cause });
  });
}
