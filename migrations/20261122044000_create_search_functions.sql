-- Names and e-mails are searched and ordered without regard to case, accents and needless blanks.
-- The functions ask neither the locale of the database (`LC_CTYPE`, which may be C) nor ICU, which
-- a build of PostgreSQL may lack. So the same text is found everywhere, and no update of a system
-- library makes an index wrong.
--
-- Returns a text of at most 200 characters, which an index takes. Letters that Unicode does not
-- take apart are listed: Latin ones, and the capitals of Greek, Cyrillic, Armenian and Georgian.
-- Marks of any script, and characters without a shape of their own, do not count. All hyphens and
-- dashes are one.
CREATE FUNCTION search_fold(written text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 200 AS $$
BEGIN
    IF octet_length(written) > char_length(written) THEN
        written := regexp_replace(
            normalize(written, NFKD) COLLATE "C",
            '[\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed'
                '\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufeff]+',
            '', 'g');
        IF octet_length(written) > char_length(written) THEN
            written := translate(
                written,
                'ØøŁłĐđÐðĦħŦŧıƏƐƆŊŒÞΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩςАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЄІҐЂЈЉЊЋЏЅӘҒҚҢӨҰҮҺ'
                'ԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔՕՖ’ʼ',
                'oollddddhhttiəɛɔŋœþαβγδεζηθικλμνξοπρστυφχψωσабвгдежзийклмнопрстуфхцчшщъыьэюяєіґђјљњћџѕәғқңөұүһ'
                'աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ''''');
            -- Rarer letters, which most texts need not be compared with.
            IF written ~ '[\u0180-\u024f\u0460-\u052f\u10a0-\u10c5\u1c90-\u1cbf]' THEN
                written := translate(
                    written,
                    'ƁƂƄƇƉƊƋƎƑƓƔƖƗƘƜƝƟƢƤƦƧƩƬƮƱƲƳƵƷƸƼǤǶǷȜȠȢȤȺȻȽȾɁɃɄɅɆɈɊɌɎѠѢѤѦѨѪѬѮѰѲѴѸѺѼѾҀҊҌҎҔҖҘҜҞҠҤҦҨҪҬҲҴҶҸҼҾӀӃӅ'
                    'ӇӉӋӍӔӠӶӺӼӾԀԂԄԆԈԊԌԎԐԒԔԖԘԚԜԞԠԢԤԦԨԪԬԮႠႡႢႣႤႥႦႧႨႩႪႫႬႭႮႯႰႱႲႳႴႵႶႷႸႹႺႻႼႽႾႿჀჁჂჃჄჅᲐᲑᲒᲓᲔᲕᲖᲗᲘᲙᲚᲛᲜᲝᲞᲟᲠᲡ'
                    'ᲢᲣᲤᲥᲦᲧᲨᲩᲪᲫᲬᲭᲮᲯᲰᲱᲲᲳᲴᲵᲶᲷᲸᲹᲺᲽᲾᲿ',
                    'ɓƃƅƈɖɗƌǝƒɠɣɩɨƙɯɲɵƣƥʀƨʃƭʈʊʋƴƶʒƹƽǥƕƿȝƞȣȥⱥȼƚⱦɂƀʉʌɇɉɋɍɏѡѣѥѧѩѫѭѯѱѳѵѹѻѽѿҁҋҍҏҕҗҙҝҟҡҥҧҩҫҭҳҵҷҹҽҿӏӄӆ'
                    'ӈӊӌӎӕӡӷӻӽӿԁԃԅԇԉԋԍԏԑԓԕԗԙԛԝԟԡԣԥԧԩԫԭԯⴀⴁⴂⴃⴄⴅⴆⴇⴈⴉⴊⴋⴌⴍⴎⴏⴐⴑⴒⴓⴔⴕⴖⴗⴘⴙⴚⴛⴜⴝⴞⴟⴠⴡⴢⴣⴤⴥაბგდევზთიკლმნოპჟრს'
                    'ტუფქღყშჩცძწჭხჯჰჱჲჳჴჵჶჷჸჹჺჽჾჿ');
            END IF;
            written := regexp_replace(written, '[\u2010-\u2015\u2212\ufe58]', '-', 'g');
            written := replace(replace(replace(replace(replace(
                written, 'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae'), 'Æ', 'ae'), 'œ', 'oe');
        END IF;
    -- Most names: ASCII, short and without needless blanks. To find that out takes half of the time
    -- of the last line.
    ELSIF octet_length(written) <= 200 AND written COLLATE "C" !~ '^ |[\t-\r]| ( |$)' THEN
        RETURN lower(written COLLATE "C");
    END IF;
    RETURN left(btrim(regexp_replace(lower(written COLLATE "C"), '\s+', ' ', 'g')), 200);
END $$;
-- Returns the words of a folded name and of the folded part of an e-mail before the @. It does not
-- call `search_fold` itself, since a restored backup fills the indexes while no schema is searched
-- for functions.
CREATE FUNCTION search_words(name text, mailbox text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 200 AS $$
BEGIN
    RETURN array_to_tsvector(array_remove(string_to_array(
        replace(replace(replace(replace(
            concat_ws(' ', name, mailbox), '.', ' '), '-', ' '), '_', ' '), '+', ' '), ' '), ''));
END $$;
