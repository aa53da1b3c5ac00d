/** Classes, teachers, made-up names and attributes. They do not depend on the number of learners. */
import type { Draws } from './school.js';

const listWords = (text: string): string[] => text.split(/,\s+/);

const firstNames =
  listWords(`Aaliyah, Amara, Ana, Andre, Arjun, Ayşe, Björn, Carlos, Chiara, Chloe, Daniel, Dmitri,
Elif, Emma, Fatima, Felix, Gabriel, Grace, Hana, Hassan, Inês, Ivan, Jamal, Jin, José, Kaito, Kofi, Leila, Leo, Linh,
Lucía, Malik, Maya, Mei, Mohammed, Nadia, Noah, Nora, Olga, Omar, Priya, Quinn, Rafael, Rosa, Samir, Sara, Siobhán,
Sofia, Tariq, Thandi, Tomás, Uma, Valentina, Wei, Yara, Yusuf, Zoë, Zuri`);
const surnames =
  listWords(`Abebe, Andersen, Baker, Bianchi, Chen, Cohen, Costa, Diallo, Dubois, Eriksen, Fischer,
Flores, Garcia, Haddad, Ito, Jansen, Kaya, Khan, Kowalski, Lee, Mensah, Moreau, Nguyen, Novak, Okafor, Park, Patel,
Petrov, Quispe, Rossi, Sato, Silva, Singh, Tanaka, Turner, Vargas, Williams, Yilmaz`);
/** Class and name of the named learners, in their order. */
const namedLearners =
  listWords(`10-A Olivia Okoye, 11-A Ruben Costa, 11-A Ida Novak, 11-A Nils Berg, 11-A Gus Turner,
10-A Rania Haddad, 10-A Viktor P., 10-A ليلى حداد, 11-A <b>Bo</b> <script>alert(2)</script>`);
/** Of grades 10 and 11, and of grades 9 and 12, for each letter. */
const teachers =
  listWords(`Ms Rivera, Mr Osei, Ms Lindqvist, Mr Marchetti, Ms Adeyemi, Mr Brandt, Ms Castillo,
Mr Dhillon, Ms Ferrari, Mr Goldberg, Ms Hoang, Mr Ibrahim, Ms Jovanovic, Mr Karlsson, Ms Laurent, Mr Mwangi,
Ms Nakamura, Mr Ortega, Ms Pereira, Mr Reyes`);

const letters = 'ABCDEFGHIJ';

export interface Enrolment {
  readonly displayName: string;
  /** Grade and letter, for example 10-A. */
  readonly className: string;
  /** Hints of the app speed learning up. */
  readonly attributes: { readonly hints: 'on' | 'off' };
}

/** Each hundred learners are four classes, one per grade. @param number of the learner, from 1 */
export function drawEnrolment(draws: Draws, number: number): Enrolment {
  const place = (number - 1) % 100;
  const grade = 9 + [26, 50, 74].filter((end) => place >= end).length;
  const surname = draws.pick(surnames);
  return {
    displayName: `${draws.pick(firstNames)} ${draws.chance(0.5) ? surname : `${surname.slice(0, 1)}.`}`,
    className: `${grade}-${letters[Math.floor((number - 1) / 100)]}`,
    attributes: { hints: draws.chance(0.5) ? 'on' : 'off' },
  };
}

export function findNamedEnrolment(place: number): Enrolment {
  const [className = '', ...name] = `${namedLearners[place]}`.split(' ');
  return { displayName: name.join(' '), className, attributes: { hints: place % 2 === 0 ? 'on' : 'off' } };
}

export const gradeOf = (className: string): string => className.slice(0, -2);

function listGroups(className: string) {
  const grade = gradeOf(className);
  const letter = letters.indexOf(className.slice(-1));
  const teacher = teachers[2 * letter + (grade === '10' || grade === '11' ? 0 : 1)] as string;
  return [
    { groupId: 'school', name: 'Demo school', kind: 'school', parentGroupId: null },
    { groupId: `grade-${grade}`, name: `Grade ${grade}`, kind: 'grade', parentGroupId: 'school' },
    { groupId: `class-${className}`, name: className, kind: 'class', parentGroupId: `grade-${grade}` },
    { groupId: `teacher-${teacher.slice(3)}`, name: teacher, kind: 'teacher', parentGroupId: 'school' },
  ];
}

/** The school, and the grades, classes and teachers that have learners. */
export function buildDemoGroups(learners: readonly (Enrolment & { readonly userId: string })[]) {
  const groups = new Map<string, ReturnType<typeof listGroups>[number] & { readonly userIds: string[] }>();
  for (const { className, userId } of learners)
    for (const group of listGroups(className)) {
      const { userIds } = groups.get(group.groupId) ?? { userIds: [] };
      groups.set(group.groupId, { ...group, userIds: [...userIds, userId] });
    }
  return [...groups.values()];
}
