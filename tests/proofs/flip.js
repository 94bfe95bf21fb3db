// The flaws that the page finds where a bit of a byte was changed: of each byte one, each in turn.
async ({prove}, [text, page, paths]) => {
    const flaws = {};
    for (const [holder, key] of paths) {
        const holderOf = (whole) => holder.reduce((it, name) => it[name], whole);
        const was = holderOf(JSON.parse(text))[key], found = new Set();
        for (let at = 0; at < was.length; at += 2) {
            const byte = parseInt(was.slice(at, at + 2), 16) ^ (1 << (at / 2 % 8));
            const whole = JSON.parse(text), changed = byte.toString(16).padStart(2, '0');
            holderOf(whole)[key] = was.slice(0, at) + changed + was.slice(at + 2);
            const judged = prove(JSON.stringify(whole), page);
            found.add(await judged.then(() => 'proven', (flaw) => flaw.message));
        }
        flaws[[...holder, key].join(' ')] = [...found].sort();
    }
    return flaws;
}
