//! Names, domains and devices of made-up users.

/// Given names. After `=` stands the form in an e-mail address, if it differs in more than case.
const GIVEN: &str = "\
    Ada, Aisha, Alejandro, Alice, Amir, Ana, Andrea, Anna, Antonio, Arjun, Astrid, Ayumi, Beatriz, \
    Björn=bjoern, Carlos, Chiara, Chloé=chloe, Claudia, Daniel, David, Deepa, Dmitri, Elena, Emma, Erik, \
    Fatima, Felix, François=francois, Freya, Gabriel, Grace, Hana, Hannah, Haruto, Hassan, Ingrid, \
    Isabel, Ivan, Jack, Jakub, James, Jana, Jens, Jin, João=joao, José=jose, Julia, Kaito, Karin, Kofi, \
    Lars, Laura, Leila, Léa=lea, Liam, Linh, Lucas, Łukasz=lukasz, Luca, Maja, María=maria, Marie, \
    Marta, Mateo, Mei, Mia, Michael, Mohammed, Nadia, Ngozi, Nikolai, Noah, Olga, Oliver, Olivia, Pablo, \
    Paul, Petra, Priya, Rahul, Rosa, Ruth, Samuel, Sara, Sofia, Søren=soren, Sven, Tariq, Thomas, \
    Tomás=tomas, Ulrike, Viktor, Wei, Yara, Yusuf, Zoë=zoe, 美咲=misaki, 陽翔=haruto, 지훈=jihun, 伟=wei, \
    Ольга=olga, Νίκος=nikos";

/// Family names, in the same format.
const FAMILY: &str = "\
    Abebe, Adeyemi, Ahmed, Ali, Almeida, Andersson, Baker, Bauer, Becker, Bernard, Bianchi, Brown, \
    Carter, Castro, Chen, Clark, Cohen, Costa, Cruz, da Silva=dasilva, Davies, de Jong=dejong, Diallo, \
    Díaz=diaz, Dubois, Eriksen, Evans, Fernández=fernandez, Ferrari, Fischer, Garcia, González=gonzalez, \
    Green, Gupta, Haddad, Hall, Hansen, Hoffmann, Hopper, Horvat, Hughes, Ito, Ivanov, Jansen, \
    Johansson, Johnson, Jones, Kaya, Keller, Khan, Kim, King, Kovács=kovacs, Kowalski, Kumar, Larsen, \
    Lee, Lefebvre, Lewis, Li, López=lopez, Lovelace, Martin, Martínez=martinez, Mendes, Meyer, Miller, \
    Moore, Moreau, Müller=mueller, Murphy, Nakamura, Nguyễn=nguyen, Nielsen, Novák=novak, \
    O'Brien=obrien, Okafor, Olsen, Park, Patel, Pereira, Pérez=perez, Petrov, Popescu, Ramos, Reyes, \
    Ricci, Robinson, Rodríguez=rodriguez, Rossi, Sánchez=sanchez, Santos, Sato, Schmidt, Schneider, \
    Sharma, Singh, Smith, Sørensen=sorensen, Suzuki, Svensson, Takahashi, Tanaka, Taylor, Torres, Tran, \
    van den Berg=vandenberg, Virtanen, Wagner, Walker, Wang, Weber, White, Williams, Wilson, \
    Wójcik=wojcik, Yamamoto, Yang, Yılmaz=yilmaz, Zhang, Zimmermann, 佐藤=sato, 김=kim, 王=wang, \
    Иванова=ivanova, Παππάς=pappas";

/// The domains of e-mail addresses. No real person can have one there (RFC 2606).
pub(super) const DOMAINS: [&str; 10] = [
    "example.com",
    "example.com",
    "example.com",
    "example.org",
    "example.net",
    "mail.example",
    "post.example",
    "students.university.example",
    "city-hospital.example",
    "old-company.example",
];

/// The devices of users: platform, device and user agent.
pub(super) const DEVICES: [(&str, &str, &str); 6] = [
    ("iOS", "iPhone", "Example/4.2 (iPhone; iOS 19.1)"),
    ("iOS", "iPad", "Example/4.2 (iPad; iPadOS 19.0)"),
    ("Android", "Pixel 9", "Example/4.1 (Android 16; Pixel 9)"),
    ("Android", "Galaxy S25", "Example/4.2 (Android 16; SM-S931B)"),
    ("Android", "Redmi Note 14", "Example/3.9 (Android 15; Redmi Note 14)"),
    ("web", "Firefox", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
];

/// A name, with its form in an e-mail address.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub written: &'static str,
    pub mailbox: String,
}

/// Returns the given names.
pub(super) fn given() -> Vec<Name> {
    read(GIVEN)
}

/// Returns the family names.
pub(super) fn family() -> Vec<Name> {
    read(FAMILY)
}

fn read(list: &'static str) -> Vec<Name> {
    list.split(',')
        .map(|entry| {
            let (written, mailbox) = entry.trim().split_once('=').unwrap_or((entry.trim(), entry.trim()));
            let letters = mailbox.chars().filter(char::is_ascii_alphabetic);
            Name { written, mailbox: letters.collect::<String>().to_ascii_lowercase() }
        })
        .collect()
}
