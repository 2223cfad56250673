import { formatBytes, formatRate } from 'rocev2/internal/core';
import type { Summary } from '../../sim/scenario/result.js';
import { scenarioBody } from '../sim/page.js';
import { isScenarioResult } from '../sim/result-schema.js';
import type { ReportMeasure, SectionReader } from './section.js';

const count = (value: number) => String(value);
const bytes = (value: number) => formatBytes(Math.round(value));

const MEASURES = [
  ['goodput', 'goodputBps', formatRate],
  ['share of what payload can have', 'efficiency', (value: number) => `${(value * 100).toFixed(2)} %`],
  ['Jain index', 'jain', (value: number) => value.toFixed(4)],
  ['slowest flow', 'minGoodputBps', formatRate],
  ['fastest flow', 'maxGoodputBps', formatRate],
  ['queue, mean', 'queueMeanBytes', bytes],
  ['queue, p99', 'queueP99Bytes', bytes],
  ['packets marked', 'markedPackets', count],
  ['CNPs', 'cnps', count],
  ['pause frames', 'pauseFrames', count],
  ['packets dropped', 'droppedPackets', count],
  ['packets retransmitted', 'retransmittedPackets', count],
] as const;

export const scenarioSection: SectionReader = (document) => {
  if (!isScenarioResult(document)) return undefined;
  const { title, scenario, summary } = document;
  return { title: title === '' ? scenario : title, body: scenarioBody(document, 3), measures: measuresOf(summary) };
};

function measuresOf(summary: Partial<Summary>): ReportMeasure[] {
  return MEASURES.flatMap(([name, field, format]) => {
    const value = summary[field];
    return typeof value === 'number' ? [{ name, value, text: format(value) }] : [];
  });
}
