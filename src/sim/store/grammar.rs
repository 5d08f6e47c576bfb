//! The grammar of label selectors, and the server's words for what does not fit it.

use super::admission::{key_details, value_details};
use super::selectors::Test;

/// The pieces of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

impl Token {
    fn shown(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
            Self::End => "",
        }
    }
}

/// Longer signs first: `==` is not two `=`.
const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", ">", "<"];
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

fn tokens(text: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            all.push(Token::Sign(sign));
            rest = rest.get(sign.len()..).unwrap_or("");
        } else {
            let ends = |c: char| c.is_whitespace() || SIGNS.iter().any(|sign| sign.starts_with(c));
            let end = rest.find(ends).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            all.push(Token::Word(word.to_owned()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    all
}

/// Reads the tokens one by one.
struct Parser {
    tokens: std::vec::IntoIter<Token>,
}

impl Parser {
    fn next(&mut self) -> Token {
        self.tokens.next().unwrap_or(Token::End)
    }
    fn peek(&self) -> Token {
        self.tokens.as_slice().first().cloned().unwrap_or(Token::End)
    }

    fn all(&mut self) -> Result<Vec<(String, Test)>, String> {
        let mut tests = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(tests),
                Token::Word(_) | Token::Sign("!") => {
                    tests.push(self.one().map_err(|why| format!("unable to parse requirement: {why}"))?);
                }
                other => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.shown())),
            }
            match self.next() {
                Token::End => return Ok(tests),
                Token::Sign(",") => match self.peek() {
                    Token::Word(_) | Token::Sign("!") => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", other.shown())),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.shown())),
            }
        }
    }

    fn one(&mut self) -> Result<(String, Test), String> {
        let negated = self.peek() == Token::Sign("!");
        if negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.shown())),
        };
        if let Some(why) = key_details(&key).into_iter().next() {
            return Err(format!("key: Invalid value: {}: {why}", super::reply::quoted(&key)));
        }
        if negated {
            return Ok((key, Test::Missing));
        }
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok((key, Test::Exists));
        }
        let operator = self.next();
        let test = match operator.shown() {
            "in" => Test::Is(self.values()?),
            "notin" => Test::IsNot(self.values()?),
            "=" | "==" => Test::Is(vec![self.value()?]),
            "!=" => Test::IsNot(vec![self.value()?]),
            sign @ (">" | "<") => {
                let value = self.value()?;
                let bound = value.parse().map_err(|_| {
                    format!(
                        "values[0]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                        super::reply::quoted(&value)
                    )
                })?;
                if sign == ">" { Test::Above(bound) } else { Test::Below(bound) }
            }
            other => return Err(format!("found '{other}', expected: {OPERATORS}")),
        };
        check_values(&key, &test)?;
        Ok((key, test))
    }

    /// One value; nothing at all is the empty one.
    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(value) => Ok(value),
            other => Err(format!("found '{}', expected: identifier", other.shown())),
        }
    }

    /// Values in parentheses; a place between commas is the empty one.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Sign("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.shown())),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Sign(")") => {
                    values.push(String::new());
                    return Ok(values);
                }
                Token::Sign(",") => values.push(String::new()),
                Token::Word(value) => {
                    values.push(value);
                    match self.next() {
                        Token::Sign(",") => {}
                        Token::Sign(")") => return Ok(values),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.shown())),
                    }
                }
                other if values.is_empty() => {
                    return Err(format!("found '{}', expected: ',', ')' or identifier", other.shown()));
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.shown())),
            }
        }
    }
}

fn check_values(key: &str, test: &Test) -> Result<(), String> {
    let (Test::Is(values) | Test::IsNot(values)) = test else { return Ok(()) };
    for (at, value) in values.iter().enumerate() {
        if let Some(why) = value_details(value).into_iter().next() {
            return Err(format!("values[{at}][{key}]: Invalid value: {}: {why}", super::reply::quoted(value)));
        }
    }
    Ok(())
}

/// The conditions of a label selector, or why it is none.
pub(super) fn label_tests(text: &str) -> Result<Vec<(String, Test)>, String> {
    Parser { tokens: tokens(text).into_iter() }.all()
}
