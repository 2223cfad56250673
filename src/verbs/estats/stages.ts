/**
 * The stages of a work request: the time between two of its stamps T1..T6 (RDMA Estats; Bai et al., "Empowering Azure
 * Storage with RDMA", NSDI 2023, §5). The first five follow one another and add up to the last, which is what the
 * application sees; t5_t1 is what the NIC sees.
 */

export const STAGES = ['t2_t1', 't3_t2', 't4_t3', 't5_t4', 't6_t5', 't5_t1', 't6_t1'] as const;

/** Name of a stage, such as `t6_t1`. */
export type StageName = (typeof STAGES)[number];

const STAGE_TEXTS: Readonly<Record<StageName, string>> = {
  t2_t1: 'waiting in the send queue: posted to first packet handed to the port',
  t3_t2: 'sending: first packet to last packet first sent',
  t4_t3: 'last packet sent to the answer that covers it: network, responder, repair of losses',
  t5_t4: 'answered to completed: waiting for older work requests',
  t6_t5: 'completed to polled: the application',
  t5_t1: 'posted to completed: as the NIC sees it',
  t6_t1: 'posted to polled: as the application sees it',
};

export function stageText(stage: StageName): string {
  return STAGE_TEXTS[stage];
}

export function stageLabel(stage: StageName): string {
  return stage.toUpperCase().replace('_', '-');
}

export const STAGE_COUNT = STAGES.length;
export const STAGE_T6_T1 = /* @__PURE__ */ STAGES.indexOf('t6_t1');
export const CONSECUTIVE_STAGES: readonly StageName[] = /* @__PURE__ */ STAGES.slice(0, 5);
