/** Measures the echo several times, to show the noise of the machine. */
import { type Bench, inTurns } from './bench.js';
import { usualTraffic } from './load/traffic.js';
import type { Noise } from './results.js';
import { peerContestant } from './scenario.js';

const pace = { rounds: 1, seconds: 1 };

export function watchNoise(bench: Bench, key: string) {
  const told: Record<keyof Noise, number[]> = { cpu: [], perSecond: [] };
  const quiet = { ...bench, progress: (text: string) => bench.progress(`noise: ${text}`) };
  const look = async (): Promise<void> => {
    const contestant = peerContestant(await bench.peer('echo'), key, usualTraffic);
    const rounds = await inTurns(quiet, [contestant], pace);
    told.cpu.push(...rounds.cpu(contestant.name));
    told.perSecond.push(...rounds.perSecond(contestant.name));
  };
  return { look, told };
}
